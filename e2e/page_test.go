package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// openPage opens the page of a server of the built-in model, which asks for no key.
func openPage(t *testing.T, args ...string) (*server, *tab) {
	t.Helper()
	s := startOpen(t, append([]string{demo}, args...)...)
	b := open(t, s.url)
	b.do("the page is ready", chromedp.WaitVisible(chromedp.CSS(composer)))
	b.wait(`document.querySelector('.welcome')?.innerText.includes('Talk to demo')`)
	return s, b
}

// TestPage follows a conversation from the first visit to its export and import.
func TestPage(t *testing.T) {
	_, b := openPage(t)

	b.say("What does --port do?")
	if text := eval[string](b, `document.querySelector('article.assistant .markdown').innerText`); strings.TrimSpace(text) == "" {
		t.Error("the answer is empty")
	}
	figures := eval[string](b, `document.querySelector('article.assistant dl').innerText`)
	for _, want := range []string{"tokens/s", "First token", "Context", "of 1,024"} {
		if !strings.Contains(figures, want) {
			t.Errorf("the figures have no %q: %s", want, figures)
		}
	}
	if title := eval[string](b, `document.title`); !strings.Contains(title, "What does --port do?") {
		t.Errorf("the title is %q", title)
	}

	// A second answer to the same message becomes a second version.
	b.click(`button[aria-label="Answer again"]`)
	b.answered()
	b.wait(`document.querySelector('article.assistant .versions')?.textContent.includes('2 of /2')`)
	b.click(`article.assistant button[aria-label="Version before"]`)
	b.wait(`document.querySelector('article.assistant .versions').textContent.includes('1 of /2')`)

	// An edited message becomes a branch.
	b.click(`article.user button[aria-label="Edit the message"]`)
	b.replace(`.editing textarea`, "What is 2 plus 3?")
	b.enter()
	b.wait(`document.querySelector('article.user .versions')?.textContent.includes('2 of /2')`)
	b.answered()
	b.click(`article.user button[aria-label="Version before"]`)
	b.wait(`document.querySelector('article.user .text').innerText === 'What does --port do?'`)
	b.wait(`document.querySelector('article.assistant .versions').textContent.includes('1 of /2')`)

	// The conversation is still there after a reload.
	b.do("reload", chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(`article.assistant`)))
	b.wait(`document.querySelectorAll('nav .list li a').length === 1`)

	// Rename it, begin a second one, and search both.
	b.click(`nav button[aria-label^="More for"]`)
	b.click(`.menu button:nth-child(1)`)
	b.replace(`nav li input`, "Ports and sums")
	b.enter()
	b.wait(`document.querySelector('nav .list a bdi').innerText === 'Ports and sums'`)
	b.click(`.new`)
	b.say("Tell me a story about a fox.")
	b.wait(`document.querySelectorAll('nav .list li a').length === 2`)
	b.write(`input[type=search]`, "2 plus 3")
	b.wait(`document.querySelectorAll('nav .list li a').length === 1 && document.querySelector('nav .list a bdi').innerText === 'Ports and sums'`)
	b.replace(`input[type=search]`, kb.Backspace)

	// Export all conversations to a file, and import it.
	b.click(`button[aria-label="Export all conversations"]`)
	name, text := b.downloaded()
	if name != "realizar-conversations.json" {
		t.Errorf("the file is called %s", name)
	}
	var file struct {
		Conversations []struct {
			Title    string
			Messages []struct{ Role, Text string }
		}
	}
	if err := json.Unmarshal([]byte(text), &file); err != nil || len(file.Conversations) != 2 {
		t.Fatalf("%v in %s", err, text)
	}
	if c := file.Conversations[1]; c.Title != "Ports and sums" || len(c.Messages) != 5 {
		t.Errorf("the first conversation is exported as %+v", c)
	}
	eval[bool](b, `(window.confirm = () => true)()`)
	for left := range 2 {
		b.click(`nav button[aria-label^="More for"]`)
		b.click(`.menu button:nth-child(3)`)
		b.wait(fmt.Sprintf(`document.querySelectorAll('nav .list li a').length === %d`, 1-left))
	}
	b.attach(`nav input[type=file]`, "conversations.json", text)
	b.wait(`document.querySelectorAll('nav .list li a').length === 2`)
	b.wait(`document.querySelectorAll('article').length === 2`)
	b.attach(`nav input[type=file]`, "other.json", `{"format": "another"}`)
	b.wait(`document.querySelector('nav .fault')?.innerText.includes('not an export of conversations')`)

	// Scroll up in a long conversation, then begin a new one, which is at its end.
	b.attach(`nav input[type=file]`, "long.json", imported(strings.Repeat("Line.\n\n", 100)))
	b.wait(`document.querySelectorAll('article.assistant p').length === 100`)
	eval[int](b, `document.querySelector('.messages').scrollTop = 0`)
	b.do("the way to the end", chromedp.WaitVisible(chromedp.CSS(`.down`)))
	b.click(`.new`)
	b.wait(`!document.querySelector('.down')`)

	// An address that names no conversation.
	eval[string](b, `location.hash = '#/c/%'`)
	b.wait(`location.hash === '#/'`)
	b.do("reload", chromedp.Navigate(b.url+"/#/c/%E0%A4%A"), chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(`.welcome`)))
}

// imported returns an export file with a conversation of a question and an answer.
func imported(answer string) string {
	text, _ := json.Marshal(answer)
	return fmt.Sprintf(`{"format": "realizar conversations", "version": 1, "conversations": [{"title": "Imported", "named": true,
		"created": 1, "updated": 1, "chosen": {}, "settings": {}, "messages": [
		{"id": "a", "parent": null, "role": "user", "text": "What is it?", "created": 1},
		{"id": "b", "parent": "a", "role": "assistant", "text": %s, "created": 2}]}]}`, text)
}

// TestPageHostileAnswer checks that whatever an answer contains is text: it runs nothing,
// loads nothing, and links to the web only.
func TestPageHostileAnswer(t *testing.T) {
	_, b := openPage(t)
	answer := strings.Join([]string{
		`Inline <img src=x onerror="window.hit = 1"> and <script>window.hit = 2</script> and <svg onload="window.hit = 3">.`,
		`<img src=x onerror="window.hit = 4">`,
		"<script>\nwindow.hit = 5\n</script>",
		`<iframe srcdoc="<script>parent.hit = 6</script>"></iframe>`,
		`[a](javascript:window.hit=7) [b](JaVaScRiPt:window.hit=8) [c](data:text/html,<script>9</script>) <javascript:window.hit=10> [d](https://example.com/ "title")`,
		`![picture](https://attacker.example/pixel.png) ![x](x" onerror="window.hit=11)`,
		"```html\n<img src=x onerror=\"window.hit = 12\"></code></pre><script>window.hit = 13</script>\n```",
		"```\"><script>window.hit=14</script>\ncode\n```",
		`$$\href{javascript:window.hit=15}{x} \includegraphics{https://attacker.example/a.png} \htmlData{onclick=1}{y}$$`,
		`$\text{<img src=x onerror="window.hit=16">}$`,
		`$$\begin{align} x \label{key-title} \tag{1} \end{align}$$ and $\ref{/server}$ and $\eqref{key-title}$`,
		`&lt;img src=x onerror="window.hit=17"&gt; &#60;script&#62;window.hit=18&#60;/script&#62;`,
		`| <img src=x onerror="window.hit=19"> |` + "\n| --- |\n| <script>window.hit=20</script> |",
	}, "\n\n")
	b.attach(`nav input[type=file]`, "hostile.json", imported(answer))
	b.do("it is shown", chromedp.WaitVisible(chromedp.CSS(`article.assistant .markdown math`)))
	b.wait(`document.querySelector('article.assistant pre .hljs-tag')`)
	links := eval[[]string](b, `[...document.querySelectorAll('article.assistant a[href]')].map((a) => a.href)`)
	if len(links) != 2 || links[0] != "https://example.com/" || links[1] != "https://attacker.example/pixel.png" {
		t.Errorf("the links are %q", links)
	}
	eval[int](b, `document.querySelectorAll('article.assistant :is(p, td, th, span)').forEach((e) => e.click()), 0`)
	if hit := eval[int](b, `window.hit ?? 0`); hit != 0 {
		t.Errorf("the answer ran script %d", hit)
	}
	if n := eval[int](b, `document.querySelectorAll('article :is(img, script, iframe, svg[onload], object, embed, [onerror], [onload], [onclick])').length`); n != 0 {
		t.Errorf("the answer has made %d elements", n)
	}
	if text := eval[string](b, `document.querySelector('article.assistant').innerText`); !strings.Contains(text, `<img src=x onerror="window.hit = 4">`) {
		t.Errorf("what was said is not there:\n%s", text)
	}
	if n := eval[int](b, `document.querySelectorAll('article.assistant .markdown :is([id], a:not([href^="https:"]))[href], article.assistant .markdown [id]').length`); n != 0 {
		t.Errorf("the answer has named or linked %d places of the page", n)
	}
	if rel := eval[string](b, `document.querySelector('article.assistant a').rel`); !strings.Contains(rel, "noopener") {
		t.Errorf("a link has the rel %q", rel)
	}

	// Text that is nested too deeply is shown as it was written.
	b.attach(`nav input[type=file]`, "deep.json", imported(strings.Repeat("> ", 5000)+"deep"))
	b.wait(`document.querySelector('article.assistant')?.innerText.includes('> > deep')`)
	b.attach(`nav input[type=file]`, "many.json", imported(strings.Repeat("*a **b ", 2000)+strings.Repeat("- x\n  ", 300)))
	b.wait(`document.querySelector('article.assistant')?.innerText.includes('b')`)

	// The content security policy itself: it refuses a script in the page.
	b.mu.Lock()
	b.expected = append(b.expected, "Content Security Policy", "TrustedHTML", "Trusted")
	b.mu.Unlock()
	blocked := eval[[]string](b, `(async () => {
		const out = [];
		addEventListener('securitypolicyviolation', (e) => out.push(e.effectiveDirective));
		const script = document.createElement('script');
		try { script.textContent = 'window.hit = 99'; document.body.append(script); } catch { out.push('trusted') }
		const style = document.createElement('style');
		style.textContent = 'body { display: none }';
		document.body.append(style);
		await fetch('https://attacker.example/').catch(() => 0);
		await new Promise((done) => setTimeout(done, 200));
		return out;
	})()`)
	for _, want := range []string{"trusted", "style-src-elem", "connect-src"} {
		if !strings.Contains(strings.Join(blocked, " "), want) {
			t.Errorf("the policy refused %q, and not %s", blocked, want)
		}
	}
	if hit := eval[int](b, `window.hit ?? 0`); hit != 0 {
		t.Errorf("script %d ran", hit)
	}
	if cookie := eval[string](b, `document.cookie`); cookie != "" {
		t.Errorf("there is a cookie: %s", cookie)
	}
}

// TestPageSettings covers tools, a schema, alternative tokens, files, settings and what the
// server refuses.
func TestPageSettings(t *testing.T) {
	_, b := openPage(t)
	b.click(`button[title="Settings"]`)
	b.write(`aside textarea[placeholder^="[{"]`, `[{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]`)
	b.write(`input[aria-describedby="help-temperature"]`, "0")
	b.write(`input[aria-describedby="help-maxTokens"]`, "60")
	b.say("What is the weather in Rome?")
	if call := eval[string](b, `document.querySelector('.call').innerText`); !strings.Contains(call, "get_weather") || !strings.Contains(call, "Rome") {
		t.Errorf("the call is shown as %q", call)
	}
	b.write(`.call textarea`, `{"temperature": 21}`)
	b.click(`article form button[type=submit]`)
	b.wait(`document.querySelectorAll('article.assistant').length === 2`)
	b.answered()
	if text := eval[string](b, `document.querySelector('article.tool').innerText`); !strings.Contains(text, "21") {
		t.Errorf("the result is shown as %q", text)
	}

	// The settings are still there after a reload.
	b.do("reload", chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(`article.tool`)))
	b.click(`button[title="Settings"]`)
	if kept := eval[string](b, `document.querySelector('input[aria-describedby="help-maxTokens"]').value`); kept != "60" {
		t.Errorf("of the settings %q tokens are kept", kept)
	}

	// An answer by a schema, with the alternatives of its tokens.
	b.click(`.new`)
	b.write(`input[aria-describedby="help-temperature"]`, "0")
	b.write(`aside textarea[placeholder^="{"]`, `{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]}`)
	b.click(`aside input[type=checkbox]`)
	b.say("Tom is 31 years old. Give his name and age as JSON.")
	text := eval[string](b, `document.querySelector('article.assistant .tokens').innerText`)
	var person struct {
		Name string
		Age  int
	}
	if err := json.Unmarshal([]byte(text), &person); err != nil {
		t.Errorf("%v in %q", err, text)
	}
	b.do("go to the tokens", chromedp.Focus(chromedp.CSS(`.tokens`)), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	if rows := eval[int](b, `document.querySelectorAll('.tokens .card tr').length`); rows < 2 {
		t.Errorf("a token has %d alternatives", rows)
	}
	if said := eval[string](b, `document.querySelector('.tokens + [role=status]').innerText`); !strings.Contains(said, "%") {
		t.Errorf("a screen reader is told %q", said)
	}
	b.click(`article.assistant button[aria-label="Show the tokens"]`)
	b.do("as Markdown", chromedp.WaitVisible(chromedp.CSS(`article.assistant .markdown`)))

	// The page reports an invalid schema before sending, and a refusal by the server after.
	b.click(`.new`)
	b.write(`aside textarea[placeholder^="{"]`, `{"type": `)
	b.wait(`document.querySelector('#schema-fault').classList.contains('fault')`)
	b.replace(`aside textarea[placeholder^="{"]`, kb.Backspace)
	b.do("an effort", chromedp.SetValue(chromedp.CSS(`aside select`), "high"))
	eval[bool](b, `document.querySelector('aside select').dispatchEvent(new Event('change', {bubbles: true}))`)
	b.say("Hi")
	b.wait(`document.querySelector('article .fault')?.innerText.includes('effort high')`)

	// A file is sent with a message, as text.
	b.click(`.new`)
	b.attach(`main input[type=file]`, "notes.txt", "The port is 9000.\n```\nfence\n```\n")
	b.do("it is there", chromedp.WaitVisible(chromedp.CSS(`.files li`)))
	b.say("Say it.")
	b.do("it is shown", chromedp.WaitVisible(chromedp.CSS(`.file summary`)))
	b.click(`a[title="See what the prompt becomes"]`)
	b.wait(`document.querySelector('.sheet pre')?.innerText.includes('notes.txt:\n\n` + "````" + `txt\nThe port is 9000.')`)
	b.wait(`document.querySelectorAll('.sheet ol li').length > 10`)
	b.attach(`nav input[type=file]`, "x.json", "{")
	b.wait(`document.querySelector('nav .fault')?.innerText.includes('not JSON')`)
}

// TestPageStop checks that an answer can be stopped, by the button and by a key.
func TestPageStop(t *testing.T) {
	_, b := openPage(t)
	b.click(`button[title="Settings"]`)
	for _, stop := range []func(){
		func() { b.click(`form[aria-label="Your message"] .row button.outlined`) },
		func() { b.do("Escape", chromedp.KeyEvent(kb.Escape)) },
	} {
		b.click(`.new`)
		b.write(`aside textarea[placeholder^="{"]`, `{"type": "array", "items": {"type": "integer"}, "minItems": 900}`)
		b.write(composer, "Tell me all.")
		b.enter()
		b.wait(`document.querySelector('article.assistant')?.innerText.length > 40`)
		stop()
		b.wait(`document.querySelector('article.assistant .end')?.innerText.includes('You stopped')`)
	}
}

// TestPageKey checks that the page asks for the key if the server wants one, and keeps it no
// longer than the tab.
func TestPageKey(t *testing.T) {
	s := serve(t)
	b := open(t, s.url)
	b.do("a key is asked for", chromedp.WaitVisible(chromedp.CSS(`dialog input[type=password]`)))
	b.write(`dialog input[type=password]`, "wrong")
	b.enter()
	b.wait(`document.querySelector('dialog p').innerText.includes('does not know')`)
	b.write(`dialog input[type=password]`, key)
	b.enter()
	b.wait(`!document.querySelector('dialog[open]') && document.querySelector('.welcome').innerText.includes('` + modelName + `')`)
	kept := eval[[]string](b, `[JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie, location.href]`)
	if !strings.Contains(kept[0], key) || strings.Contains(strings.Join(kept[1:], " "), key) {
		t.Errorf("the key is kept in %q", kept)
	}
	b.write(composer, "Hi")
	b.enter()
	b.wait(`document.querySelector('article.assistant')?.innerText.length > 10`)
}

// TestPageByName checks that the page works under a host name and plain HTTP, where browsers
// permit less.
func TestPageByName(t *testing.T) {
	s := startOpen(t, demo, "--allow-host", "llm.example")
	_, port, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), ":")
	b := open(t, "http://llm.example:"+port, chromedp.Flag("host-resolver-rules", "MAP llm.example 127.0.0.1"))
	b.do("the page is ready", chromedp.WaitVisible(chromedp.CSS(`.welcome bdi`)))
	if eval[bool](b, `isSecureContext`) {
		t.Error("the page is of a secure context, so that nothing is tried here")
	}
	b.say("Hi")
	if fault := eval[string](b, `document.querySelector('.fault')?.innerText ?? ''`); fault != "" {
		t.Error(fault)
	}
	b.click(`article.assistant button[aria-label="Copy the answer"]`)
	b.wait(`document.querySelector('article.assistant .acts').innerText.includes('Copied')`)
}

// TestPageViews checks what the views of the server and of a prompt show.
func TestPageViews(t *testing.T) {
	_, b := openPage(t)
	b.say("Hi")
	b.click(`a[href="#/server"]`)
	b.do("charts", chromedp.WaitVisible(chromedp.CSS(`main svg[role=img] path`)))
	b.wait(`[...document.querySelectorAll('main dl div')].some((row) => /Tokens answered\s+[1-9]/.test(row.innerText))`)
	b.wait(`[...document.querySelectorAll('main tbody tr')].some((row) => /First token/.test(row.innerText) && / ms| s/.test(row.innerText))`)
	b.click(`a[href="#/prompt"]`)
	b.wait(`document.querySelector('.sheet pre')?.innerText.includes('<|im_start|>user\nHi<|im_end|>')`)
	b.click(`input[value=text]`)
	b.wait(`document.querySelector('.sum strong')?.innerText === '` + fmt.Sprint(len(tokens(t, b, "Why is the sky blue?"))) + `'`)
}

func tokens(t *testing.T, b *tab, text string) []int {
	t.Helper()
	quoted, _ := json.Marshal(text)
	return eval[struct{ Tokens []int }](b, `fetch('/tokenize', {method: 'POST', body: JSON.stringify({prompt: `+string(quoted)+`})}).then((r) => r.json())`).Tokens
}

// axe returns axe-core, the script that finds barriers for people with disabilities. It is
// the file in REALIZAR_AXE, or the one that npm installed beside the page's source.
func axe(t *testing.T) string {
	t.Helper()
	file := os.Getenv("REALIZAR_AXE")
	if file == "" {
		file = filepath.Join("..", "web", "node_modules", "axe-core", "axe.min.js")
	}
	script, err := os.ReadFile(file)
	if err != nil {
		if os.Getenv("REALIZAR_AXE") != "" {
			t.Fatal(err)
		}
		t.Skip("axe-core is not there: run npm ci in web")
	}
	return string(script)
}

// look reports what axe finds in the current view.
func (b *tab) look(script, what string) {
	b.t.Helper()
	type finding struct {
		ID, Impact, Help string
		Nodes            []struct {
			HTML           string `json:"html"`
			FailureSummary string `json:"failureSummary"`
		}
	}
	for _, f := range eval[[]finding](b, script+`; axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)`) {
		b.t.Errorf("%s: %s (%s): %s\n%s\n%s", what, f.ID, f.Impact, f.Help, f.Nodes[0].HTML, f.Nodes[0].FailureSummary)
	}
}

// TestPageForEveryone runs axe on the views, light and dark, wide and narrow.
func TestPageForEveryone(t *testing.T) {
	script := axe(t)
	_, b := openPage(t)
	b.attach(`nav input[type=file]`, "all.json", imported("# Head\n\nText with `code`, **strong** and [a link](https://example.com).\n\n- one\n- two\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```go\nfunc main() { return 1 } // comment\n```\n\n$$x^2$$\n\n```\nplain\n```\n\n| c |\n| --- |\n| 3 |\n\nשלום עולם\n\n> quoted\n\n> ציטוט\n\n- [x] רשימה"))
	b.do("it is shown", chromedp.WaitVisible(chromedp.CSS(`article.assistant math`)))
	b.wait(`document.querySelector('pre .hljs-keyword')`)
	if direction := eval[string](b, `getComputedStyle([...document.querySelectorAll('.markdown p')].find((p) => p.innerText.includes('שלום'))).direction`); direction != "rtl" {
		t.Errorf("Hebrew runs %s", direction)
	}
	if directions := eval[string](b, `[...document.querySelectorAll('.markdown :is(blockquote, ul)')].map((e) => getComputedStyle(e).direction).join()`); directions != "ltr,ltr,rtl,rtl" {
		t.Errorf("lists and quotations run %s", directions)
	}
	talk := eval[string](b, `location.hash`)
	for _, width := range []int64{390, 1024, 1920} {
		for _, theme := range []string{"light", "dark"} {
			b.do("the theme", chromedp.EmulateViewport(width, 800))
			eval[string](b, `document.documentElement.dataset.theme = '`+theme+`'`)
			for _, hash := range []string{talk, "#/", "#/server", "#/prompt"} {
				eval[string](b, `location.hash = '`+hash+`'`)
				b.wait(`document.querySelector('main h2')`)
				what := fmt.Sprintf("%s, %d wide, %s", hash, width, theme)
				b.look(script, what)
				if over := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					t.Errorf("%s: the page is %v pixels too wide", what, over)
				}
			}
			eval[string](b, `location.hash = '`+talk+`'`)
			b.do("the conversation", chromedp.WaitVisible(chromedp.CSS(`article.assistant`)))
			b.click(`button[title="Settings"]`)
			b.look(script, fmt.Sprintf("settings, %d wide, %s", width, theme))
			b.click(`button[aria-label="Close the settings"]`)
		}
	}

	// On a phone the list of conversations covers the page and keeps the keyboard focus.
	b.do("a phone", chromedp.EmulateViewport(390, 800), chromedp.Sleep(300*time.Millisecond)) // the list moves out
	b.click(`.opener`)
	b.wait(`document.activeElement.getAttribute('aria-label') === 'Close the list' && document.querySelector('main').inert`)
	b.do("it has come", chromedp.Sleep(300*time.Millisecond))
	b.click(`nav button[aria-label^="More for"]`)
	b.look(script, "the list")
	b.do("Escape", chromedp.KeyEvent(kb.Escape))
	b.wait(`document.activeElement.getAttribute('aria-label') === 'Open the list' && !document.querySelector('main').inert`)

	// Calls, tokens with their alternatives, and the dialog for keys.
	b.do("wide", chromedp.EmulateViewport(1024, 800))
	b.click(`.new`)
	b.click(`button[title="Settings"]`)
	b.write(`aside textarea[placeholder^="[{"]`, `{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}`)
	b.write(`input[aria-describedby="help-temperature"]`, "0")
	b.click(`aside input[type=checkbox]`)
	for _, theme := range []string{"light", "dark"} {
		eval[string](b, `document.documentElement.dataset.theme = '`+theme+`'`)
		b.say("What is the weather in Rome?")
		b.do("go to a token", chromedp.Focus(chromedp.CSS(`.tokens`)), chromedp.KeyEvent(kb.ArrowRight))
		b.look(script, "calls and tokens, "+theme)
		b.click(`button[aria-label="Keys and licences"]`)
		b.look(script, "keys, "+theme)
		b.do("Escape", chromedp.KeyEvent(kb.Escape))
	}
}

// TestPageFirstPaint checks that the first paint comes within 0.3 s. It takes the quickest of
// several, as other processes share the machine.
func TestPageFirstPaint(t *testing.T) {
	_, b := openPage(t)
	best := 1e9
	for range 5 {
		b.do("reload", chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(composer)))
		best = min(best, eval[float64](b, `new Promise((done) => new PerformanceObserver((list) => list.getEntriesByName('first-contentful-paint').forEach((e) => done(e.startTime))).observe({type: 'paint', buffered: true}))`))
	}
	t.Logf("the first paint comes after %.0f ms", best)
	if best > 300 {
		t.Errorf("the first paint comes after %.0f ms", best)
	}
}
