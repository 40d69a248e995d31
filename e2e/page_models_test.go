package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// serveSeveral starts a server of the models one, two and three, of which two have room, and of
// broken, which cannot be loaded.
func serveSeveral(t *testing.T, args ...string) *server {
	t.Helper()
	dir := t.TempDir()
	whole, err := os.ReadFile(filepath.Join("..", "demo", "demo.gguf"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "broken.gguf"), whole[:len(whole)/2], 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "models.yaml"), []byte("one: {source: demo, preload: true}\ntwo: {source: demo}\nthree: {source: demo}\nbroken: {source: broken.gguf}\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return startOpen(t, append([]string{"--models", filepath.Join(dir, "models.yaml"), "--memory", "32MiB", "--context", "1024", "--parallel", "2"}, args...)...)
}

// choices are the models to choose from, as the page shows them.
const choices = `[...document.querySelectorAll('main select option')].map((o) => o.innerText).join(', ')`

// row is a row of the table of models, its columns beside each other. How much memory a model has
// depends on the machine.
func row(name string) string {
	return `[...document.querySelectorAll('[aria-label="Table of models"] tbody tr')].map((r) => [...r.children].map((c) => c.innerText).join(' ').replace(/[0-9.]+ MiB/, 'n MiB')).find((r) => r.startsWith('` + name + ` '))`
}

// choose has the conversation be with another model.
func (b *tab) choose(name string) {
	b.t.Helper()
	b.do("the model "+name, chromedp.SetValue(chromedp.CSS(`main select`), name))
	eval[bool](b, `document.querySelector('main select').dispatchEvent(new Event('change', {bubbles: true}))`)
}

// The models to choose from say how they stand, and go on saying so while others load and unload
// them; an answer that waits for its model says that.
func TestPageSeveral(t *testing.T) {
	s := serveSeveral(t)
	b := open(t, s.url)
	b.wait(choices + ` === 'one · ready, two · not loaded, three · not loaded, broken · not loaded'`)
	b.choose("two")
	b.wait(`document.querySelector('.welcome').innerText.includes('It is not loaded; your message loads it.')`)
	b.say("Hi")
	b.wait(choices + ` === 'one · ready, two · ready, three · not loaded, broken · not loaded'`)
	s.post("/models/unload", `{"model": "one"}`)
	b.wait(choices + ` === 'one · not loaded, two · ready, three · not loaded, broken · not loaded'`)
	b.click(`.new`)
	b.choose("broken")
	b.say("Hi")
	b.wait(`document.querySelector('article .fault')?.innerText.includes('"broken" cannot be loaded')`)
	b.wait(choices + `.endsWith('broken · failed')`)

	// Two long answers have the memory that the third model needs.
	b.click(`.new`)
	b.choose("three")
	ended := make(chan struct{}, 2)
	for _, name := range []string{"one", "two"} {
		go func() {
			s.post("/v1/completions", `{"model": "`+name+`", "prompt": "Hi", "max_tokens": 200, "ignore_eos": true}`)
			ended <- struct{}{}
		}()
	}
	b.wait(choices + `.startsWith('one · ready, two · ready')`)
	eval[bool](b, `(() => {
		window.told = [];
		new MutationObserver(() => document.querySelectorAll('article.assistant p[role=status]').forEach((p) => told.push(p.innerText))).observe(document.body, {subtree: true, childList: true, characterData: true});
		return true;
	})()`)
	b.say("Hi")
	b.wait(`window.told.some((text) => text === 'The model waits to be loaded.' || text === 'The model is being loaded.')`)
	if text := eval[string](b, `document.querySelector('article.assistant .markdown').innerText + document.querySelectorAll('article.assistant p[role=status]').length`); !strings.HasSuffix(text, "0") || len(text) < 2 {
		t.Errorf("the answer is shown as %q", text)
	}
	for range 2 {
		<-ended
	}
}

// The view of the server has a row for each model, with a button that loads or unloads it; what
// goes wrong is said.
func TestPageModels(t *testing.T) {
	s := serveSeveral(t)
	b := open(t, s.url+"/#/server")
	b.wait(row("one") + ` === 'one ready 0 0 n MiB Unload'`)
	b.wait(row("two") + ` === 'two not loaded 0 0 – Load'`)
	const used = `Number(/cpu: ([0-9.]+) MiB of 32 MiB are reserved for models/.exec(document.querySelector('main').innerText)?.[1])`
	before := eval[float64](b, used)
	b.click(`button[aria-label="Load two"]`)
	b.wait(row("two") + ` === 'two ready 0 0 n MiB Unload'`)
	b.wait(fmt.Sprintf(`Math.abs(%s - 2 * %g) < 0.2`, used, before))
	b.click(`button[aria-label="Unload one"]`)
	b.wait(row("one") + ` === 'one not loaded 0 0 – Load'`)
	b.click(`button[aria-label="Load broken"]`)
	b.wait(`document.querySelector('main [role=alert]')?.innerText.includes('broken was not loaded: ')`)
	b.wait(row("broken") + ` === 'broken failed 0 0 – Load'`)
	b.click(`button[aria-label="Load three"]`)
	b.wait(row("three") + ` === 'three ready 0 0 n MiB Unload' && !document.querySelector('main [role=alert]')`)
	b.wait(`[...document.querySelectorAll('main .two p bdi')].map((m) => m.innerText).join() === 'three,two'`)
}

// Where the server asks for a key, the buttons and the events bear it.
func TestPageModelsKey(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveSeveral(t, "--api-key-file", keys)
	b := open(t, s.url+"/#/server")
	b.do("a key is asked for", chromedp.WaitVisible(chromedp.CSS(`dialog input[type=password]`)))
	b.write(`dialog input[type=password]`, key)
	b.enter()
	b.wait(`!document.querySelector('dialog[open]')`)
	b.click(`button[aria-label="Load two"]`)
	b.wait(row("two") + `?.startsWith('two ready')`)
	eval[string](b, `location.hash = '#/'`)
	b.wait(choices + `.startsWith('one · ready, two · ready')`)
}

// A server of another version, which has no states, no events and no models in its metrics, is
// shown as before.
func TestPageWithoutStates(t *testing.T) {
	s := startOpen(t, demo)
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	for what, state := range map[string]string{"no states": "", "states without events": `, "state": "ready"`} {
		t.Run(what, func(t *testing.T) {
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/v1/models":
					_, _ = fmt.Fprintf(w, `{"data": [{"id": "demo"%[1]s}, {"id": "other"%[1]s}]}`, state)
				case r.URL.Path == "/metrics":
					_, _ = fmt.Fprintln(w, "vllm:num_requests_running 1")
				case strings.HasPrefix(r.URL.Path, "/models"):
					http.NotFound(w, r)
				default:
					proxy.ServeHTTP(w, r)
				}
			}))
			defer h.Close()
			b := open(t, h.URL)
			want := "demo, other"
			if state != "" {
				want = "demo · ready, other · ready"
			}
			b.wait(choices + ` === '` + want + `'`)
			b.say("Hi")
			eval[string](b, `location.hash = '#/server'`)
			b.wait(`document.querySelector('main')?.innerText.includes('Under way')`)
			if n := eval[int](b, `document.querySelectorAll('[aria-label="Table of models"], main [role=alert]').length`); n != 0 {
				t.Error("there is a table of models, or a fault")
			}
		})
	}
}

// What axe finds in the views of several models, light and dark, wide and narrow.
func TestPageSeveralForEveryone(t *testing.T) {
	script := axe(t)
	s := serveSeveral(t)
	s.post("/models/load", `{"model": "broken"}`)
	b := open(t, s.url)
	for _, width := range []int64{390, 1024, 1920} {
		for _, theme := range []string{"light", "dark"} {
			b.do("the width", chromedp.EmulateViewport(width, 800))
			eval[string](b, `document.documentElement.dataset.theme = '`+theme+`'`)
			for hash, there := range map[string]string{"#/": `main select option`, "#/server": `[aria-label="Table of models"] tr + tr`} {
				eval[string](b, `location.hash = '`+hash+`'`)
				b.wait(`document.querySelector('` + there + `')`)
				what := fmt.Sprintf("%s, %d wide, %s", hash, width, theme)
				b.look(script, what)
				if over := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					t.Errorf("%s: the page is %v pixels too wide", what, over)
				}
			}
		}
	}
}
