use super::*;

#[test]
fn every_name_and_alias_means_one_field() {
    let mut seen = std::collections::BTreeSet::new();
    for field in FIELDS.iter() {
        for name in [&[field.name], field.aliases].concat() {
            assert!(seen.insert(name), "{name} twice");
            assert_eq!(Field::find(&name.to_uppercase()), Some(field));
        }
    }
}

#[test]
fn derived_fields_come_from_columns_that_are_fields() {
    for field in FIELDS.iter() {
        for source in field.columns() {
            let column = Field::find(source).unwrap();
            assert_eq!(column.name, *source);
            assert!(column.columns().contains(source), "{source} is itself derived");
        }
    }
}
