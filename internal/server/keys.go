package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

// Keys are the keys that requests may have, read from a file.
type Keys struct {
	path   string
	hashes atomic.Pointer[[][sha256.Size]byte]
}

// maxKeyFile is the maximum size of a key file in bytes.
const maxKeyFile = 1 << 20

// ReadKeys reads a file with one key per line. It skips empty lines and lines that begin with #.
func ReadKeys(path string) (*Keys, error) {
	k := &Keys{path: path}
	return k, k.Reload()
}

// Reload reads the file again. After an error the keys stay as they were.
func (k *Keys) Reload() error {
	data, err := os.ReadFile(k.path)
	switch {
	case err != nil:
		return fmt.Errorf("keys: %w", err)
	case len(data) > maxKeyFile:
		return fmt.Errorf("keys: %s has %d bytes; want %d at most", k.path, len(data), maxKeyFile)
	}
	var hashes [][sha256.Size]byte
	number := 0
	for line := range bytes.Lines(data) {
		number++
		key := bytes.TrimSpace(line)
		if len(key) == 0 || key[0] == '#' {
			continue
		}
		for _, c := range key {
			if c <= ' ' || c > '~' {
				return fmt.Errorf("keys: %s:%d: a key has a character that a header cannot have; want visible ASCII", k.path, number)
			}
		}
		hashes = append(hashes, sha256.Sum256(key))
	}
	if len(hashes) == 0 {
		return fmt.Errorf("keys: %s has no key; want one per line", k.path)
	}
	k.hashes.Store(&hashes)
	return nil
}

// check returns an error if a request in d has none of the keys. It compares hashes of equal
// length, and always all of them, so that its time reveals nothing.
func (k *Keys) check(d Dialect, r *http.Request) error {
	if k == nil {
		return nil
	}
	key, err := d.Key(r)
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(key))
	same := 0
	for _, h := range *k.hashes.Load() {
		same |= subtle.ConstantTimeCompare(h[:], hash[:])
	}
	if same == 0 {
		return &Error{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "the server does not know this API key"}
	}
	return nil
}

// BearerKey returns the key of a request's Authorization header.
func BearerKey(r *http.Request) (string, error) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || key == "" {
		return "", &Error{Status: http.StatusUnauthorized, Code: "missing_api_key",
			Message: "the request bears no key; send it in a header, Authorization: Bearer KEY"}
	}
	return strings.TrimSpace(key), nil
}
