package main

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/realizar/realizar/e2e/dashboard"
)

// shootDashboard draws deploy/grafana/realizar.json for the time until now, as WebP, or as PNG if
// all is set.
func shootDashboard(ctx context.Context, prometheus, out string, window, scrape time.Duration, all bool) error {
	d, err := dashboard.Read("../deploy/grafana/realizar.json")
	if err != nil {
		return err
	}
	now := time.Now()
	html, height, err := d.Draw(ctx, dashboard.Prometheus(prometheus), dashboard.Window{Start: now.Add(-window), End: now, Scrape: scrape})
	if err != nil {
		return err
	}
	address := "data:text/html;charset=utf-8;base64," + base64.StdEncoding.EncodeToString(html)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(dashboard.Width, int64(height)), chromedp.Navigate(address)); err != nil {
		return err
	}
	name := "dashboard.webp"
	if all {
		name = "dashboard.png"
	}
	return capture(ctx, filepath.Join(out, name))
}
