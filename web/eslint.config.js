import globals from "globals";
import svelte from "eslint-plugin-svelte";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["dist/", "node_modules/", "test-results/"] },
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser } },
  },
  {
    rules: {
      // What comes from packets is text.
      "svelte/no-at-html-tags": "error",
      // Links are hash routes of this page and paths of its own server.
      "svelte/no-navigation-without-resolve": "off",
      "max-len": ["error", { code: 100, ignoreUrls: true }],
    },
  },
);
