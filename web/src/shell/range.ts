import { recorder } from "./recorder.svelte";

/** An hour while something is recorded. Of a volume at rest an hour would be empty. */
export const defaultRange = () => (recorder.isRecording ? "1h" : "all");
