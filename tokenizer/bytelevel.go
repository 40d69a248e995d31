package tokenizer

import "unicode/utf8"

// Byte-level vocabularies spell each byte as a visible character (GPT-2's encoder.py): the
// printable characters of Latin-1 spell themselves, and U+0100 and up spell the other 68 bytes.

// byteChars is the spelling of each byte.
var byteChars = func() (chars [256]string) {
	next := rune(256)
	for b := range chars {
		r := rune(b)
		if visible := '!' <= r && r <= '~' || 0xA1 <= r && r != 0xAD; !visible {
			r = next
			next++
		}
		chars[b] = string(r)
	}
	return chars
}()

// charBytes maps each character to the byte that it spells, -1 for none.
var charBytes = func() (table [256 + 68]int16) {
	for i := range table {
		table[i] = -1
	}
	for b, c := range byteChars {
		r, _ := utf8.DecodeRuneInString(c)
		table[r] = int16(b)
	}
	return table
}()

// spelledBytes appends the bytes that token spells to dst. If a character spells no byte, ok is
// false and nothing is appended.
func spelledBytes(dst []byte, token string) (_ []byte, ok bool) {
	n := len(dst)
	for _, r := range token {
		if int(r) >= len(charBytes) || charBytes[r] < 0 {
			return dst[:n], false
		}
		dst = append(dst, byte(charBytes[r]))
	}
	return dst, true
}
