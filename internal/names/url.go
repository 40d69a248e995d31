package names

import (
	"fmt"
	"net/url"
	"strings"
)

const urlForm = "want https://host/model.gguf#sha256=..., with the file's digest of 64 hexadecimal digits"

// parseURL parses https://host/file#sha256=digest. http:// is allowed only for this machine.
func parseURL(text string) (Name, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return Name{}, fmt.Errorf("%.200s: not the address of a file; %s", text, urlForm)
	}
	if u.User != nil {
		return Name{}, fmt.Errorf("%s: an address must not contain a user name or password, because names are displayed and stored; remove it", u.Redacted())
	}
	if h := strings.ToLower(u.Hostname()); h == "huggingface.co" || h == "hf.co" {
		return Name{}, fmt.Errorf("%s: write models on the hub as hf:org/repo, such as hf:%s", text, hubPage(u.Path))
	}
	algorithm, digest, ok := strings.Cut(u.Fragment, "=")
	switch {
	case !ok:
		return Name{}, fmt.Errorf("%s: a file without a digest is not trusted; %s", text, urlForm)
	case algorithm != "sha256":
		return Name{}, fmt.Errorf("%s: a %.20q digest is not supported; %s", text, algorithm, urlForm)
	case !isHex(strings.ToLower(digest), 64):
		return Name{}, fmt.Errorf("%s: the digest has %d digits; %s", text, len(digest), urlForm)
	case u.Scheme == "http" && !Local(u.Host):
		return Name{}, fmt.Errorf("%s: plain http:// is allowed only for this machine; write https://", text)
	}
	n := Name{Kind: URL, SHA256: strings.ToLower(digest)}
	u.Fragment = ""
	n.URL = u.String()
	if err := CheckFile(n.File()); err != nil {
		return Name{}, fmt.Errorf("%s: the address does not end in a valid file name: %w", text, err)
	}
	return n, nil
}

// hubPage returns the repository that the path of a hub page names, or "org/repo" if it names none.
func hubPage(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 {
		return "org/repo"
	}
	return parts[0] + "/" + parts[1]
}

// File returns the name of a URL's file: the last element of its path.
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
