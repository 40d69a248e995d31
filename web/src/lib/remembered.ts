/** The browser's storage, or undefined where it gives none. */
export function remembered(storage: () => Storage): Storage | undefined {
  try {
    return storage();
  } catch {
    return undefined;
  }
}
