/** Lets keys scroll a box, as long as it holds more than it shows. */
export function scrollable(box: HTMLElement): () => void {
  const mark = () => {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  };
  const observer = new ResizeObserver(mark);
  observer.observe(box);
  for (const child of box.children) {
    observer.observe(child);
  }
  return () => observer.disconnect();
}
