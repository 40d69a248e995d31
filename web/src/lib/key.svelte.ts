import { remembered } from './remembered';

// The key that requests bear, where the server wants one. The browser forgets it with the tab.
const place = 'realizar.key';

class Key {
  value = $state(remembered(() => sessionStorage)?.getItem(place) ?? '');
  /** Why a key is asked for, or null where none is. */
  wanted: string | null = $state(null);

  set(value: string) {
    this.value = value;
    this.wanted = null;
    const storage = remembered(() => sessionStorage);
    if (value) storage?.setItem(place, value);
    else storage?.removeItem(place);
  }
}

export const key = new Key();
