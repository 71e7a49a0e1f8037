import { formatRoute, parseRoute, type Route, type View } from "./route";

class Place {
  route = $state.raw<Route>(parseRoute(location.hash));

  constructor() {
    addEventListener("hashchange", () => this.refresh());
  }

  /** After the address was replaced, of which browsers send no event. */
  refresh(): void {
    this.route = parseRoute(location.hash);
  }

  go(view: View, parameters: Record<string, string> = {}, id = ""): void {
    location.hash = formatRoute(view, parameters, id);
  }

  /** Changes parameters of this view. An empty value removes one. */
  change(changes: Record<string, string>): void {
    const { view, id, parameters } = this.route;
    this.go(view, { ...parameters, ...changes }, id);
  }

  parameter(name: string): string {
    return this.route.parameters[name] ?? "";
  }
}

export const place = new Place();
