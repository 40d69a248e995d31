// The key that requests bear, where the server wants one. The browser forgets it with the tab.
const place = 'realizar.key';

class Key {
  value = $state(sessionStorage.getItem(place) ?? '');
  /** Why a key is asked for, or null where none is. */
  wanted: string | null = $state(null);

  set(value: string) {
    this.value = value;
    this.wanted = null;
    if (value) sessionStorage.setItem(place, value);
    else sessionStorage.removeItem(place);
  }
}

export const key = new Key();
