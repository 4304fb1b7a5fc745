// uPlot formats numbers in the browser's language when it is loaded, and fails if that is no language
// tag: `en-US@posix` is what Chromium says on a machine without a locale, such as a screen on a wall.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en' });
}
