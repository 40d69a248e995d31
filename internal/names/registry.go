package names

import (
	"fmt"
	"net"
	"regexp"
	"strings"
)

const (
	ollamaForm   = "want ollama:model, ollama:model:tag or ollama:namespace/model:tag"
	registryForm = "want oci://registry/name:tag or oci://registry/name@sha256:..."
)

var (
	ollamaPart   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$`)
	registryPart = regexp.MustCompile(`^[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*$`)
	registryTag  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	registryHost = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:[0-9]{1,5})?$`)
)

// parseOllama parses [host/][namespace/]model[:tag].
func parseOllama(text, rest string) (Name, error) {
	n := Name{Kind: Ollama, Host: OllamaHost, Tag: DefaultTag}
	if slash := strings.LastIndexByte(rest, '/'); strings.Contains(rest[slash+1:], ":") {
		model, tag, _ := strings.Cut(rest[slash+1:], ":")
		rest, n.Tag = rest[:slash+1]+model, tag
	}
	parts := strings.Split(rest, "/")
	switch len(parts) {
	case 1:
		parts = []string{ollamaNamespace, parts[0]}
	case 2:
	case 3:
		n.Host = parts[0]
		parts = parts[1:]
		if !registryHost.MatchString(n.Host) {
			return Name{}, fmt.Errorf("%s: %q is not a host; %s", text, n.Host, ollamaForm)
		}
	default:
		return Name{}, fmt.Errorf("%s: %d parts; %s", text, len(parts), ollamaForm)
	}
	for _, p := range append([]string{n.Tag}, parts...) {
		if !ollamaPart.MatchString(p) || strings.Contains(p, "..") {
			return Name{}, fmt.Errorf("%s: %q is not valid here: a part has letters, digits and - . _; %s", text, p, ollamaForm)
		}
	}
	n.Repository = strings.Join(parts, "/")
	return n, nil
}

// parseRegistry parses host/name[:tag|@digest].
func parseRegistry(text, rest string) (Name, error) {
	n := Name{Kind: Registry}
	host, repository, ok := strings.Cut(rest, "/")
	if !ok || !registryHost.MatchString(host) {
		return Name{}, fmt.Errorf("%s: the registry or the name is missing or invalid; %s", text, registryForm)
	}
	n.Host = host
	repository, digest, hasDigest := strings.Cut(repository, "@")
	if colon := strings.LastIndexByte(repository, ':'); colon >= 0 {
		repository, n.Tag = repository[:colon], repository[colon+1:]
		if !registryTag.MatchString(n.Tag) {
			return Name{}, fmt.Errorf("%s: %q is not a tag; %s", text, n.Tag, registryForm)
		}
	}
	if len(repository) > maxRegistryParts {
		return Name{}, fmt.Errorf("%s: a name of %d bytes; registries allow %d", text, len(repository), maxRegistryParts)
	}
	for p := range strings.SplitSeq(repository, "/") {
		if !registryPart.MatchString(p) {
			return Name{}, fmt.Errorf("%s: %q is not a valid part of a registry name: a part has lower-case letters, digits and - . _; %s", text, p, registryForm)
		}
	}
	n.Repository = repository
	switch {
	case hasDigest:
		if _, err := CheckDigest(digest); err != nil {
			return Name{}, fmt.Errorf("%s: %w", text, err)
		}
		n.Tag, n.Digest = "", digest
	case n.Tag == "":
		n.Tag = DefaultTag
	}
	return n, nil
}

// CheckDigest returns the hexadecimal digits of a digest sha256:.... Any other algorithm is an
// error.
func CheckDigest(digest string) (string, error) {
	algorithm, hex, ok := strings.Cut(digest, ":")
	switch {
	case !ok || algorithm != "sha256":
		return "", fmt.Errorf("the digest %.80q: only sha256:... is supported", digest)
	case !isHex(hex, 64):
		return "", fmt.Errorf("the digest %.80q: want sha256: and 64 hexadecimal digits in lower case", digest)
	}
	return hex, nil
}

// Local reports whether host, with or without a port, is this machine. Connections to it need no
// TLS.
func Local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
