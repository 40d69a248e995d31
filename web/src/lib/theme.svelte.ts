import { remembered } from './remembered';

// Dark or light: as the system has it, unless the switch says otherwise.
export type Theme = 'system' | 'light' | 'dark';

const place = 'realizar.theme';
const themes: Theme[] = ['system', 'light', 'dark'];

function kept(): Theme {
  const value = remembered(() => localStorage)?.getItem(place) as Theme;
  return themes.includes(value) ? value : 'system';
}

export const theme = $state({ value: kept() });

/** Has the page be as the theme says. */
export function followTheme(): void {
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length]!;
  remembered(() => localStorage)?.setItem(place, theme.value);
  followTheme();
}
