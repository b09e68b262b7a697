// Colors of communities: even in lightness, far apart in hue for neighbors in size.

const HUES = 14;
const STEP = 5; // coprime to HUES: the next color is a third of the circle away

function toHex(lightness, chroma, hue) {
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  // OKLab to linear sRGB: Ottosson 2020.
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const byte = (value) => {
    const clipped = Math.min(Math.max(value, 0), 1);
    const encoded = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
    return Math.round(encoded * 255).toString(16).padStart(2, "0");
  };
  return `#${linear.map(byte).join("")}`;
}

export function palette(dark) {
  return Array.from({ length: HUES * 2 }, (_, i) => {
    const hue = (2 * Math.PI * ((i * STEP) % HUES)) / HUES + 0.5;
    const second = i >= HUES;
    return dark ? toHex(second ? 0.66 : 0.76, second ? 0.09 : 0.125, hue) : toHex(second ? 0.7 : 0.6, second ? 0.1 : 0.145, hue);
  });
}

// With so much opacity, premultiplied: that is how the map's shaders blend.
export function withAlpha(hex, alpha) {
  const byte = (value) => Math.round(value).toString(16).padStart(2, "0");
  const channels = [1, 3, 5].map((at) => byte(parseInt(hex.slice(at, at + 2), 16) * alpha));
  return `#${channels.join("")}${byte(alpha * 255)}`;
}

// `hex` on `background`, so much of it.
export function mixed(hex, background, share) {
  const channel = (at) => {
    const [a, b] = [parseInt(hex.slice(at, at + 2), 16), parseInt(background.slice(at, at + 2), 16)];
    return Math.round(a * share + b * (1 - share)).toString(16).padStart(2, "0");
  };
  return `#${channel(1)}${channel(3)}${channel(5)}`;
}
