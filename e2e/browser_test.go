package e2e_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Action is a step of a test in the browser.
type Action = chromedp.Action[chromedp.Void]

// A tab is a tab of a fresh browser, which shows the server's page.
type tab struct {
	t         *testing.T
	ctx       context.Context
	url       string
	downloads string

	mu       sync.Mutex
	asked    []string // addresses of requests
	faults   []string // errors in the console, and dialogs that opened
	expected []string // parts of the messages of faults that the test provokes
}

// patience is how long a step may take.
const patience = 20 * time.Second

// open shows the page of a server. It skips the test if there is no browser; in CI, where
// REALIZAR_BROWSER is set, the test fails then.
func open(t *testing.T, address string, options ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("REALIZAR_BROWSER") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no chromium")
	}
	options = slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(1024, 768),
	}, options)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, url: address, downloads: t.TempDir()}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.check)
	b.do("the page opens", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
			Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: b.downloads,
		})
		return err
	}), chromedp.Navigate(address))
	return b
}

// note is called with every event of the tab.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *network.EventWebSocketCreated:
		b.asked = append(b.asked, e.URL)
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			b.faults = append(b.faults, fmt.Sprintf("console: %s", e.Args[0].Value))
		}
	case *page.EventJavascriptDialogOpening:
		b.faults = append(b.faults, "dialog: "+e.Message)
	}
}

// check checks that the page asked no other host and that nothing went wrong.
func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	own, _ := url.Parse(b.url)
	for _, address := range b.asked {
		u, err := url.Parse(address)
		if err != nil || u.Host != own.Host && u.Scheme != "blob" && address != "about:blank" {
			b.t.Errorf("the page asks %s", address)
		}
	}
	if len(b.asked) == 0 {
		b.t.Error("no request was seen")
	}
	for _, fault := range b.faults {
		if !slices.ContainsFunc(b.expected, func(part string) bool { return strings.Contains(fault, part) }) {
			b.t.Error(fault)
		}
	}
}

// do runs steps and fails the test if one fails.
func (b *tab) do(what string, steps ...Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.text())
	}
}

// text returns the text of the page, for error messages.
func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	return text
}

// eval returns the value of a JavaScript expression. It waits for a promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// wait waits until an expression is true.
func (b *tab) wait(expression string) {
	b.t.Helper()
	for begun := time.Now(); !eval[bool](b, "!!("+expression+")"); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > patience {
			b.t.Fatalf("it never holds that %s; the page says:\n%s", expression, b.text())
		}
	}
}

// click clicks the first element that matches the selector.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// write types into an element.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	b.do("write into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// enter presses the Enter key as a keyboard does: if the page handles the key press, no line
// break is inserted.
func (b *tab) enter() {
	b.t.Helper()
	b.do("press Enter", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		press := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13}
		if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, press); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13})
		return err
	}))
}

// replace replaces the content of an element by typing.
func (b *tab) replace(selector, text string) {
	b.t.Helper()
	b.wait(`document.querySelector('` + selector + `')`)
	eval[int](b, `document.querySelector('`+selector+`').select(), 0`)
	b.write(selector, text)
}

// composer is the field in which a message is written.
const composer = `textarea[aria-label^="Message to"]`

// say sends a message and waits for the end of its answer.
func (b *tab) say(text string) {
	b.t.Helper()
	before := eval[int](b, `document.querySelectorAll('article.assistant').length`)
	b.write(composer, text)
	b.enter()
	if left := eval[string](b, `document.querySelector('`+composer+`').value`); left != "" {
		b.t.Errorf("the message leaves %q behind", left)
	}
	b.wait(fmt.Sprintf(`document.querySelectorAll('article.assistant').length > %d`, before))
	b.answered()
}

// answered waits for the end of an answer.
func (b *tab) answered() {
	b.t.Helper()
	b.wait(`document.querySelector('article[aria-busy=false].assistant') && !document.querySelector('[aria-busy=true]')`)
}

// attach puts a file into a file input.
func (b *tab) attach(selector, name, text string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.do("attach "+name, chromedp.SetUploadFiles(chromedp.CSS(selector), []string{file}))
}

// downloaded waits for the next file that the browser saves.
func (b *tab) downloaded() (name, text string) {
	b.t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(b.downloads, "*.json"))
		if err != nil {
			b.t.Fatal(err)
		}
		if len(files) == 0 {
			continue
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			b.t.Fatal(err)
		}
		_ = os.Remove(files[0])
		return filepath.Base(files[0]), string(data)
	}
	b.t.Fatal("nothing was saved")
	return "", ""
}
