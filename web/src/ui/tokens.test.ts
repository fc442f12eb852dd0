import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

const CSS = readFileSync(new URL("./tokens.css", import.meta.url), "utf8");
const AA_TEXT = 4.5;
const AA_GRAPHICS = 3;

/** Colours of one scheme; the dark block overrides the first one. */
function colours(text: string): Map<string, string> {
  const found = text.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6});/g);
  return new Map([...found].map(([, name = "", value = ""]) => [name, value]));
}

const [lightText = "", darkText = ""] = CSS.split("@media (prefers-color-scheme: dark)");
const light = colours(lightText);
const schemes = { light, dark: new Map([...light, ...colours(darkText)]) };

/** Relative luminance by WCAG 2.2. */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const channel = parseInt(hex.slice(start, start + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, bright = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

const SURFACES = ["ground", "surface", "surface-sunk"];
const TEXTS = ["text", "text-soft", "link"];
const TINTS = ["nnapi", "cpu", "good", "bad", "info", "quiet"];

describe.each(Object.entries(schemes))("%s colours", (_, scheme) => {
  const of = (name: string) => {
    const value = scheme.get(name);
    if (value === undefined) throw new Error(`tokens.css has no --${name}`);
    return value;
  };

  it.each(TEXTS.flatMap((text) => SURFACES.map((surface) => [text, surface] as const)))(
    "--%s is readable on --%s",
    (text, surface) => {
      expect(contrast(of(text), of(surface))).toBeGreaterThanOrEqual(AA_TEXT);
    },
  );

  it.each(TINTS)("--%s-text is readable on its tint", (tint) => {
    expect(contrast(of(`${tint}-text`), of(`${tint}-soft`))).toBeGreaterThanOrEqual(AA_TEXT);
  });

  it("has readable buttons and a problem's small print", () => {
    expect(contrast(of("accent-text"), of("accent"))).toBeGreaterThanOrEqual(AA_TEXT);
    expect(contrast(of("text-soft"), of("bad-soft"))).toBeGreaterThanOrEqual(AA_TEXT);
    expect(contrast(of("bad-text"), of("surface"))).toBeGreaterThanOrEqual(AA_TEXT);
  });

  it.each(["nnapi", "cpu", "accent", "focus", "line-strong"])(
    "--%s is visible as a line",
    (name) => {
      expect(contrast(of(name), of("surface"))).toBeGreaterThanOrEqual(AA_GRAPHICS);
    },
  );
});
