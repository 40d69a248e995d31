package names

import (
	"fmt"
	"net/url"
	"strings"
)

const urlForm = "want https://host/model.gguf#sha256=..., with the file's digest of 64 hexadecimal digits"

// parseURL reads https://host/file#sha256=digest. Without TLS is taken from this machine
// alone.
func parseURL(text string) (Name, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return Name{}, fmt.Errorf("%.200s: no address of a file; %s", text, urlForm)
	}
	if u.User != nil {
		return Name{}, fmt.Errorf("%s: an address with a user's name or password is not taken, as names are shown and kept; leave it out", u.Redacted())
	}
	if h := strings.ToLower(u.Hostname()); h == "huggingface.co" || h == "hf.co" {
		return Name{}, fmt.Errorf("%s: models of the hub are called hf:org/repo, such as hf:%s", text, hubPage(u.Path))
	}
	algorithm, digest, ok := strings.Cut(u.Fragment, "=")
	switch {
	case !ok:
		return Name{}, fmt.Errorf("%s: a file without a digest is not trusted; %s", text, urlForm)
	case algorithm != "sha256":
		return Name{}, fmt.Errorf("%s: a digest of %.20q is not taken; %s", text, algorithm, urlForm)
	case !isHex(strings.ToLower(digest), 64):
		return Name{}, fmt.Errorf("%s: the digest has %d digits; %s", text, len(digest), urlForm)
	case u.Scheme == "http" && !Local(u.Host):
		return Name{}, fmt.Errorf("%s: a file that comes without TLS is not taken; write https://", text)
	}
	n := Name{Kind: URL, SHA256: strings.ToLower(digest)}
	u.Fragment = ""
	n.URL = u.String()
	if err := CheckFile(n.File()); err != nil {
		return Name{}, fmt.Errorf("%s: the address ends in no file's name: %w", text, err)
	}
	return n, nil
}

// hubPage is what a page's path on the hub names, as far as it does.
func hubPage(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 {
		return "org/repo"
	}
	return parts[0] + "/" + parts[1]
}

// File is what a URL's file is called: the last part of its path.
func (n Name) File() string {
	u, err := url.Parse(n.URL)
	if err != nil {
		return ""
	}
	return u.Path[strings.LastIndexByte(u.Path, '/')+1:]
}

// URLHost is the host of a URL's file, with its port where it has one.
func (n Name) URLHost() string {
	u, err := url.Parse(n.URL)
	if err != nil {
		return ""
	}
	return u.Host
}
