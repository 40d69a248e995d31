package names_test

import (
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/names"
)

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParse(t *testing.T) {
	for text, want := range map[string]names.Name{
		"hf:org/repo":                                 {Kind: names.Hub, Org: "org", Repo: "repo"},
		"hf:gpt2":                                     {Kind: names.Hub, Repo: "gpt2"},
		"hf:Org-1/Re.po_x:Q4_K_M":                     {Kind: names.Hub, Org: "Org-1", Repo: "Re.po_x", Quant: "Q4_K_M"},
		"hf:org/repo@v1.0":                            {Kind: names.Hub, Org: "org", Repo: "repo", Revision: "v1.0"},
		"hf:org/repo:Q8_0@refs/pr/1":                  {Kind: names.Hub, Org: "org", Repo: "repo", Quant: "Q8_0", Revision: "refs/pr/1"},
		"hf:org/repo:Q4_K_M/a-b.gguf":                 {Kind: names.Hub, Org: "org", Repo: "repo", Quant: "Q4_K_M/a-b.gguf"},
		"hf:org/repo:safetensors":                     {Kind: names.Hub, Org: "org", Repo: "repo", Quant: "safetensors"},
		"ollama:llama3":                               {Kind: names.Ollama, Host: names.OllamaHost, Repository: "library/llama3", Tag: "latest"},
		"ollama:llama3.2:1b":                          {Kind: names.Ollama, Host: names.OllamaHost, Repository: "library/llama3.2", Tag: "1b"},
		"ollama:someone/m:t":                          {Kind: names.Ollama, Host: names.OllamaHost, Repository: "someone/m", Tag: "t"},
		"ollama:127.0.0.1:5000/n/m":                   {Kind: names.Ollama, Host: "127.0.0.1:5000", Repository: "n/m", Tag: "latest"},
		"oci://host/name":                             {Kind: names.Registry, Host: "host", Repository: "name", Tag: "latest"},
		"oci://host:5000/a/b-c:v1":                    {Kind: names.Registry, Host: "host:5000", Repository: "a/b-c", Tag: "v1"},
		"oci://h.org/a@sha256:" + digest:              {Kind: names.Registry, Host: "h.org", Repository: "a", Digest: "sha256:" + digest},
		"https://h.org/a/m.gguf#sha256=" + digest:     {Kind: names.URL, URL: "https://h.org/a/m.gguf", SHA256: digest},
		"http://127.0.0.1:80/m.gguf#sha256=" + digest: {Kind: names.URL, URL: "http://127.0.0.1:80/m.gguf", SHA256: digest},
		"demo": {Kind: names.Path, Path: "demo"}, "./a/b.gguf": {Kind: names.Path, Path: "./a/b.gguf"}, `C:\m.gguf`: {Kind: names.Path, Path: `C:\m.gguf`},
		"org/repo": {Kind: names.Path, Path: "org/repo"}, "a:b": {Kind: names.Path, Path: "a:b"},
	} {
		got, err := names.Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := names.Parse(got.String()); err != nil || again != got {
			t.Errorf("%s becomes %s, which is %+v, %v", text, got, again, err)
		}
	}
}

// The error of a malformed name says what a valid one looks like.
func TestParseErrors(t *testing.T) {
	for text, says := range map[string]string{
		"": "hf:org/repo", "a\x00b": "control", "\xff": "UTF-8", strings.Repeat("a", 5000): "2048 at most",
		"hf:": "want hf:org/repo", "hf:../x": "letters and digits", "hf:org/..": "letters and digits", "hf:a/b/c": "want hf:org/repo", "hf:/etc/passwd": "empty",
		"hf:a--b/c": "separated by single", "hf:org/repo.git": "want hf:", "hf:org/repo:": "follows the colon", "hf:org/repo:../x.gguf": "neither a quantization",
		"hf:org/repo:/etc/m.gguf": "neither a quantization", "hf:org/repo@": "no revision", "hf:org/repo@../..": "no revision", "hf:org/repo@a//b": "no revision",
		"hf:org/" + strings.Repeat("a", 97): "the hub allows 96",
		"ollama:":                           "want ollama:", "ollama:../../x": "want ollama:", "ollama:a/b/c/d": "4 parts", "ollama:m:../t": "want ollama:", "ollama:h o/n/m": "not a host", "ollama:..": "want ollama:",
		"oci://": "want oci://", "oci://host": "want oci://", "oci://host/Upper": "lower-case letters", "oci://host/a/../b": "lower-case letters", "oci://host/a:": "is not a tag",
		"oci://host/a@sha512:" + digest + digest: "only sha256", "oci://host/a@sha256:12": "64 hexadecimal",
		"https://h/m.gguf": "without a digest", "https://h/m.gguf#md5=12": "md5", "https://h/m.gguf#sha256=12": "64", "http://h.org/m.gguf#sha256=" + digest: "https://",
		"https://u:secret@h/m.gguf#sha256=" + digest: "remove it", "https://huggingface.co/org/repo/resolve/main/m.gguf": "hf:org/repo", "https://h/..#sha256=" + digest: "file",
		"https://h/#sha256=" + digest: "file", "s3://bucket/m": "hf:org/repo", "hf://org/repo": "hf:org/repo", "file:///m.gguf": "a path",
	} {
		_, err := names.Parse(text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80q: error %v, want one that says %q", text, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is in %v", err)
		}
	}
}

func TestParsePlain(t *testing.T) {
	for _, text := range []string{"org/repo", "Org/Repo-GGUF:Q4_K_M", "org/repo@v1", "org/repo:Q8_0@main", "org/repo:sub/x.gguf"} {
		n, ok := names.ParsePlain(text)
		if !ok || n.String() != "hf:"+text {
			t.Errorf("%s: %v, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "repo", "/a/b", "./a/b", "../a", "~/a", "a/b/c", "a/b/", "a/b c", `a\b`, "a/..", "a/b:", "a/b@"} {
		if n, ok := names.ParsePlain(text); ok {
			t.Errorf("%q is %v, want none", text, n)
		}
	}
}

func TestCheckFile(t *testing.T) {
	for _, ok := range []string{"a", "a/b.gguf", ".gitattributes", "1_Pooling/config.json", "..a", "a..b"} {
		if err := names.CheckFile(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "../a", "a/../b", "/a", "a//b", "a/", `a\b`, "C:a", "a\x00", "a\n", "con", "NUL.txt", "a.", "a ", "\xff", strings.Repeat("a", 256), strings.Repeat("a/", 600) + "a"} {
		if err := names.CheckFile(bad); err == nil || !strings.Contains(err.Error(), "want a path") {
			t.Errorf("%.40q: error %v", bad, err)
		}
	}
	for _, list := range [][]string{{"a", "A"}, {"a", "a"}, {"a", "a/b"}, {"A", "a/b/c"}, {"x", ".."}} {
		if err := names.CheckFiles(list); err == nil {
			t.Errorf("%q are taken", list)
		}
	}
	if err := names.CheckFiles([]string{"a/b", "a/c", "b"}); err != nil {
		t.Error(err)
	}
}

func TestAliases(t *testing.T) {
	a, err := names.ParseAliases("f", []byte("# mine\n\nsmall = hf:org/repo:Q4_K_M\n big:1 =  ./m.gguf \nd = demo\n"))
	if err != nil || len(a) != 3 || a["small"] != "hf:org/repo:Q4_K_M" || a["big:1"] != "./m.gguf" {
		t.Fatalf("%v, %v", a, err)
	}
	if again, err := names.ParseAliases("f", a.Format()); err != nil || len(again) != 3 || again["d"] != "demo" {
		t.Errorf("written and read: %v, %v", again, err)
	}
	for text, says := range map[string]string{
		"x": "f:1", "a/b = demo": "no alias", "hf:x = demo": "no alias", "a = b": "itself a short name", "a = demo\na = demo": "twice", "a = hf:..": "want hf:", "a =": "empty", "m.gguf = demo": "no alias",
	} {
		if _, err := names.ParseAliases("f", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want %q", text, err, says)
		}
	}
	if _, err := names.ParseAliases("f", make([]byte, names.MaxAliases+1)); err == nil {
		t.Error("a file beyond the size limit is parsed")
	}
}
