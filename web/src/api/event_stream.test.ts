import { describe, expect, it } from "vitest";

import { EventParser } from "./event_stream";

describe("EventParser", () => {
  it("puts together an event that arrives in pieces", () => {
    const parser = new EventParser();
    expect(parser.push("id: 7\nevent: prog")).toEqual([]);
    expect(parser.push('ress\ndata: {"done": 1}\n')).toEqual([]);
    expect(parser.push("\n")).toEqual([{ id: "7", event: "progress", data: '{"done": 1}' }]);
  });

  it("joins data lines and takes every line ending", () => {
    const parser = new EventParser();
    expect(parser.push("data: a\r\ndata: b\r\n\r\ndata:c\n\n")).toEqual([
      { id: "", event: "message", data: "a\nb" },
      { id: "", event: "message", data: "c" },
    ]);
  });

  it("keeps a carriage return back until it knows what follows", () => {
    const parser = new EventParser();
    expect(parser.push("data: a\r")).toEqual([]);
    expect(parser.push("\n\r")).toEqual([]);
    expect(parser.push("\n")).toEqual([{ id: "", event: "message", data: "a" }]);
  });

  it("passes over comments, unknown fields and events without data", () => {
    const parser = new EventParser();
    expect(parser.push(": ping\n\nretry: 5\nevent: status\n\nid\ndata\n\n")).toEqual([
      { id: "", event: "message", data: "" },
    ]);
  });

  it("keeps the id for later events, as a resume needs it", () => {
    const parser = new EventParser();
    const events = parser.push("id: 4\ndata: x\n\ndata: y\n\n");
    expect(events.map((event) => event.id)).toEqual(["4", "4"]);
  });
});
