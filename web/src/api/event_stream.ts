/** One server-sent event. */
export interface StreamEvent {
  id: string;
  event: string;
  data: string;
}

/**
 * Splits the text of an event stream into events, chunk by chunk.
 *
 * Follows "9.2.6 Interpreting an event stream" of the HTML standard. The browser's EventSource
 * cannot send the Authorization header, so the page reads the stream with fetch.
 */
export class EventParser {
  #rest = "";
  #id = "";
  #event = "";
  #data: string[] = [];

  push(chunk: string): StreamEvent[] {
    const lines = (this.#rest + chunk).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): StreamEvent[] {
    if (line === "") return this.#dispatch();
    if (line.startsWith(":")) return [];
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.#id = value;
    else if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    return [];
  }

  #dispatch(): StreamEvent[] {
    const event = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    const empty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return empty ? [] : [event];
  }
}

interface FollowOptions {
  headers: () => Record<string, string>;
  signal: AbortSignal;
  onEvent: (event: StreamEvent) => void;
  onState: (state: "live" | "reconnecting") => void;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/**
 * Reads an event stream until it is aborted, resuming after the last event seen.
 *
 * A stream that ends is opened again: the caller aborts when it has seen the final state.
 */
export async function followEvents(url: string, options: FollowOptions): Promise<void> {
  let lastId = "";
  let waitMs = FIRST_WAIT_MS;
  const remember = (event: StreamEvent) => {
    lastId = event.id;
    waitMs = FIRST_WAIT_MS;
    options.onEvent(event);
  };
  for (;;) {
    try {
      const resume: Record<string, string> = lastId === "" ? {} : { "Last-Event-ID": lastId };
      const headers = { Accept: "text/event-stream", ...options.headers(), ...resume };
      const response = await fetch(url, { headers, signal: options.signal });
      if (response.ok && response.body !== null) {
        options.onState("live");
        await readEvents(response.body, remember);
      }
    } catch (error) {
      // Only network failures are worth another try; anything else is a fault of the page.
      const worthRetry = error instanceof TypeError || options.signal.aborted;
      if (!worthRetry) throw error;
    }
    if (options.signal.aborted) return;
    options.onState("reconnecting");
    await pause(waitMs, options.signal);
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}

async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (event: StreamEvent) => void,
): Promise<void> {
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    parser.push(decoder.decode(chunk.value, { stream: true })).forEach(onEvent);
  }
}

function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, durationMs);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
