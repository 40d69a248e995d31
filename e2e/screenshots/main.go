// Screenshots makes the pictures in the docs. Those of docs/page.md are the page of a running server
// with a prepared conversation, in a browser. That of docs/production.md is the dashboard, drawn from
// what a Prometheus has.
//
//	go run ./screenshots -url http://localhost:8080 -out ../docs/page
//	go run ./screenshots -prometheus http://localhost:9090 -out ../docs/production
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

//go:embed conversation.json
var conversation []byte

// A shot is a picture of a view.
type shot struct {
	name          string
	width, height int64
	theme         string
	hash          string // of the view; empty for the conversation
	before        chromedp.Action[chromedp.Void]
}

var widths = map[int64]int64{390: 844, 1024: 768, 1920: 1080}

func main() {
	url := flag.String("url", "http://localhost:8080", "the server's address")
	out := flag.String("out", ".", "the folder for the pictures")
	watch := flag.Duration("watch", 6*time.Second, "how long to watch the server, which should have something to do")
	all := flag.Bool("all", false, "every view at every width, light and dark, as PNG")
	prometheus := flag.String("prometheus", "", "draw the dashboard from what this Prometheus has, and nothing else")
	window := flag.Duration("window", 10*time.Minute, "the time that the dashboard shows")
	scrape := flag.Duration("scrape", 15*time.Second, "the Prometheus' interval between scrapes")
	flag.Parse()
	shoot := func(ctx context.Context) error { return shootPage(ctx, *url, *out, *watch, *all) }
	if *prometheus != "" {
		shoot = func(ctx context.Context) error { return shootDashboard(ctx, *prometheus, *out, *window, *scrape, *all) }
	}
	if err := run(shoot); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run starts a browser for shoot.
func run(shoot func(context.Context) error) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("hide-scrollbars", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil { // the browser ends with the context that is used first
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return shoot(ctx)
}

func shootPage(ctx context.Context, url, out string, watch time.Duration, all bool) error {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("realizar-screenshots-%d.json", os.Getpid()))
	if err := os.WriteFile(file, conversation, 0o600); err != nil {
		return err
	}
	defer os.Remove(file) //nolint:errcheck // it is in the system's temporary folder
	if err := chromedp.Do(ctx,
		chromedp.Navigate(url),
		chromedp.WaitVisible(chromedp.CSS(`textarea[aria-label^="Message to"]`)),
		chromedp.SetUploadFiles(chromedp.CSS(`input[type=file][accept]`), []string{file}),
		chromedp.WaitVisible(chromedp.CSS(`article.assistant`)),
	); err != nil {
		return fmt.Errorf("the conversation is not shown: %w", err)
	}
	talk, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.hash`))
	if err != nil {
		return err
	}
	for _, s := range shots(all) {
		if s.hash == "" {
			s.hash = talk
		}
		if err := take(ctx, url, out, watch, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Println(s.name)
	}
	return nil
}

func shots(all bool) []shot {
	if !all {
		return []shot{
			{name: "talk.webp", width: 1024, height: 768, theme: "light"},
			{name: "talk-dark.webp", width: 1024, height: 768, theme: "dark"},
			{name: "phone.webp", width: 390, height: 780, theme: "light"},
			{name: "server.webp", width: 1024, height: 768, theme: "light", hash: "#/server"},
			{name: "prompt.webp", width: 1024, height: 768, theme: "light", hash: "#/prompt"},
		}
	}
	settings := chromedp.Click(chromedp.CSS(`button[title="Settings"]`))
	var list []shot
	for _, width := range []int64{390, 1024, 1920} {
		for _, theme := range []string{"light", "dark"} {
			end := fmt.Sprintf("-%d-%s.png", width, theme)
			list = append(list,
				shot{name: "talk" + end, width: width, theme: theme},
				shot{name: "top" + end, width: width, theme: theme, before: chromedp.Evaluate[chromedp.Void](`document.querySelector('.messages').scrollTop = 0`)},
				shot{name: "settings" + end, width: width, theme: theme, before: settings},
				shot{name: "new" + end, width: width, theme: theme, hash: "#/"},
				shot{name: "server" + end, width: width, theme: theme, hash: "#/server"},
				shot{name: "prompt" + end, width: width, theme: theme, hash: "#/prompt"})
		}
		list = append(list, shot{name: fmt.Sprintf("list-%d.png", width), width: width, theme: "light", before: chromedp.Evaluate[chromedp.Void](`document.querySelector('.opener').click()`)})
	}
	for i := range list {
		list[i].height = widths[list[i].width]
	}
	return list
}

// settle is how long to wait for charts and fonts.
const settle = 700 * time.Millisecond

func take(ctx context.Context, url, out string, watch time.Duration, s shot) error {
	actions := []chromedp.Action[chromedp.Void]{
		chromedp.EmulateViewport(s.width, s.height),
		prefer(s.theme),
		chromedp.Navigate("about:blank"),
		chromedp.Navigate(url + "/" + s.hash),
		chromedp.WaitVisible(chromedp.CSS(`main`)),
		chromedp.Sleep(settle),
	}
	if s.before != nil {
		actions = append(actions, s.before, chromedp.Sleep(settle))
	}
	if s.hash == "#/server" {
		actions = append(actions, chromedp.Sleep(watch))
	}
	if err := chromedp.Do(ctx, actions...); err != nil {
		return err
	}
	return capture(ctx, filepath.Join(out, s.name))
}

// capture writes what the browser shows to a file, whose extension says how.
func capture(ctx context.Context, path string) error {
	format := page.CaptureScreenshotFormatPng
	if filepath.Ext(path) == ".webp" {
		format = page.CaptureScreenshotFormatWebp
	}
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: format, Quality: new(int64(82))})
	if err != nil {
		return err
	}
	if len(picture.Data) == 0 {
		return errors.New("the picture is empty")
	}
	return os.WriteFile(path, picture.Data, 0o644) //nolint:gosec // everyone may read the picture
}

// prefer sets whether the browser prefers light or dark pages.
func prefer(theme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return err
	})
}
