package main_test

import (
	"strings"
	"testing"
)

// TestFirstHour checks that mistakes of new users give one sentence that says what to do.
func TestFirstHour(t *testing.T) {
	s, _ := babbleHub(t)
	u := newUser(t, s.URL)
	fill := strings.NewReplacer("{hub}", s.Host)
	for _, c := range []struct {
		args, env string
		code      int
		says      string
	}{
		{"pull hf:org/babble", "HF_ENDPOINT=http://127.0.0.1:1", 1, "hf:org/babble: no server responds: 127.0.0.1:1/api/models/org/babble/revision/main: dial tcp 127.0.0.1:1: connect: connection refused; check the network, and set HTTPS_PROXY if there is a proxy, or HF_ENDPOINT for a mirror of the hub"},
		{"pull ollama:127.0.0.1:1/n/small", "", 1, "ollama:127.0.0.1:1/n/small:latest: no server responds: 127.0.0.1:1/v2/n/small/manifests/latest: dial tcp 127.0.0.1:1: connect: connection refused; check the name and the network, and set HTTPS_PROXY if there is a proxy"},
		{"pull hf:org/bable", "", 1, "hf:org/bable: the hub has no such repository, or it is private: check the name, or set HF_TOKEN to a token that may read it ({hub}/api/models/org/bable/revision/main answers 404 Not Found (Repository not found))"},
		{"pull hf:org/babble:Q4_K_M", "", 1, "hf:org/babble:Q4_K_M: no such model: there is no Q4_K_M; there are Q8_0"},
		{"pull hf:org/babble@v9", "", 1, "hf:org/babble@v9: the repository has no such revision; http://{hub}/org/babble lists branches, tags and commits ({hub}/api/models/org/babble/revision/v9 answers 404 Not Found)"},
		{"pull hf:org/babble --revision ../x", "", 2, `--revision: "../x" is not a revision; want a branch, a tag or a commit, such as main`},
		{"pull babble", "", 1, "babble is neither a file nor the name of a model; want a name such as hf:org/repo, ollama:model, oci://registry/name:tag, or a short name (realizar cp); realizar list shows the models on this machine"},
		{"run babble hi", "", 1, "babble is neither a file nor the name of a model; want a name such as hf:org/repo, ollama:model, oci://registry/name:tag, or a short name (realizar cp); realizar list shows the models on this machine"},
		{"pull demo", "", 1, "demo is built in: there is nothing to pull"},
		{"pull hf:../babble", "", 2, `hf:../babble: ".." is not a valid name on the hub: names have letters and digits, separated by single characters of - . _; want hf:org/repo, hf:org/repo:Q4_K_M or hf:org/repo@revision`},
		{"pull hf:org/babble", "HF_TOKEN=hf_wrong", 1, "hf:org/babble: the hub has no such repository, or does not take your token: check the name, and HF_TOKEN ({hub}/api/models/org/babble/revision/main answers 401 Unauthorized (Invalid username or password.))"},
		{"pull hf:org/babble", "HF_TOKEN=two words", 1, "HF_TOKEN holds no token of the hub: it has spaces, line feeds or too many characters; write the token alone"},
		{"pull hf:org/babble", "HF_HUB_OFFLINE=1", 1, "hf:org/babble is not pulled: HF_HUB_OFFLINE is set; unset it"},
		{"pull hf:org/babble", "HF_ENDPOINT=nonsense", 1, "hf:org/babble: HF_ENDPOINT is not the address of a hub; want one such as https://huggingface.co"},
		{"pull ollama:{hub}/n/none", "", 1, "ollama:{hub}/n/none:latest: the registry has no such model or tag; check the name ({hub}/v2/n/none/manifests/latest answers 404 Not Found)"},
		{"run s3://bucket/model hi", "", 1, "s3://bucket/model: s3:// is not supported; want hf:org/repo, ollama:model, oci://registry/name:tag, https://host/file.gguf#sha256=..., or a path"},
		{"run hf:org/babble hi", "", 1, "hf:org/babble is not on this machine; realizar pull hf:org/babble fetches it"},
		{"show hf:org/babble", "", 1, "hf:org/babble is not on this machine; realizar pull hf:org/babble fetches it"},
		{"rm hf:org/babble --yes", "", 1, "hf:org/babble is not on this machine; realizar pull hf:org/babble fetches it"},
		{"run ollama:small hi", "", 1, "ollama:small:latest is not on this machine; realizar pull ollama:small:latest fetches it"},
	} {
		v := *u
		if c.env != "" {
			v.env = append(append([]string{}, u.env...), fill.Replace(c.env))
		}
		r := v.run(strings.Fields(fill.Replace(c.args))...)
		want := "realizar: " + fill.Replace(c.says) + "\n"
		if c.code == 2 {
			want += "See realizar " + strings.Fields(c.args)[0] + " --help.\n"
		}
		if r.code != c.code || r.stderr != want || r.stdout != "" {
			t.Errorf("realizar %s: exit code %d, standard output %q, standard error\n%swant\n%s", c.args, r.code, r.stdout, r.stderr, want)
		}
	}
}
