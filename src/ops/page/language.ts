// When uPlot is loaded it creates a number format for navigator.language, which throws if that is not a valid language tag. Chromium
// reports `en-US@posix` on machines without a locale, such as wall displays.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en' });
}
