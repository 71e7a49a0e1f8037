import { downloadBlob } from "../shell/download";

const SCALE = 2;

/** A title as the name of a file. */
export function fileName(title: string, ending: string): string {
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  return `${name.slice(0, 60) || "plot"}.${ending}`;
}

export function saveSvg(svg: string, title: string): void {
  downloadBlob(new Blob([svg], { type: "image/svg+xml" }), fileName(title, "svg"));
}

/** Paints a picture on a canvas of twice its size. */
export async function savePng(svg: string, title: string): Promise<void> {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [SCALE * image.width, SCALE * image.height];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) {
      downloadBlob(blob, fileName(title, "png"));
    }
  } finally {
    URL.revokeObjectURL(address);
  }
}
