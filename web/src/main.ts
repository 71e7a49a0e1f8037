import { mount } from "svelte";
import "uplot/dist/uPlot.min.css";
import App from "./App.svelte";
import "./styles.css";

const target = document.getElementById("app");
if (!target) {
  throw new Error("The page has no element for the application.");
}
mount(App, { target });
