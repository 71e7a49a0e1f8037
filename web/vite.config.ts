import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The recorder embeds these files by name, so the names carry no hash.
export default defineConfig({
  plugins: [svelte()],
  base: "./",
  build: {
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        inlineDynamicImports: true,
        entryFileNames: "app.js",
        assetFileNames: (asset) =>
          asset.names.some((name) => name.endsWith(".css")) ? "app.css" : "[name][extname]",
      },
    },
  },
  server: {
    proxy: { "/api": process.env["WIRESPOOL_URL"] ?? "http://127.0.0.1:8420" },
  },
});
