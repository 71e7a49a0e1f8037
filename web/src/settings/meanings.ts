export interface Meaning {
  text: string;
  /** The command that changes it, where that is no flag of the service. */
  change: string;
}

const meaning = (text: string, change = ""): Meaning => ({ text, change });

/** What settings of the service are, in the order of docs/config.md. */
export const MEANINGS: Record<string, Meaning> = {
  volumes: meaning("The volumes that are served", "wirespool serve VOLUME..."),
  listen: meaning("Where the service listens"),
  public_url: meaning("The address of this page, for keys and the provider"),
  tls_cert: meaning("Certificate of the service"),
  tls_key: meaning("Its key"),
  client_ca: meaning("Who signs certificates of clients"),
  client_crl: meaning("Which of them are revoked"),
  stenographer: meaning("Where Stenographer's programs are answered"),
  token_file: meaning("Tokens of programs", "wirespool serve token create NAME"),
  people_file: meaning("Who logs in at this page", "wirespool serve person add NAME"),
  role: meaning("Roles besides administrator, analyst and viewer"),
  provider: meaning("The identity provider"),
  audit: meaning("Where each request is put down"),
  audit_size: meaning("Size of a file of the audit"),
  audit_files: meaning("Files of the audit that are kept"),
  hold_dir: meaning("Where packets are put aside"),
  hold_size: meaning("Bytes of all holds"),
  tags_file: meaning("Tags of sessions"),
  requests_file: meaning("Extracts that one asks for and another one approves"),
  qualification: meaning("Reports of disks that are shown", "wirespool qualify --output FILE"),
  tshark: meaning("The program that decodes packets, without rights"),
  index_dir: meaning("Where index files are cached"),
  identity: meaning("The key that opens encrypted volumes"),
  workers: meaning("Requests that are answered at the same time"),
  connections: meaning("Connections that are open at the same time"),
  max_time: meaning("How long an answer may take"),
  max_bytes: meaning("Bytes that an answer may have"),
};
