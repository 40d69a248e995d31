// Adversary attacks `realizar serve` over loopback for a limited time, and reports what that
// did to the server and to an honest client at the same time. The server is a process of its
// own, with little memory and few files.
//
//	go run ./adversary -binary PATH               # two minutes
//	go run ./adversary -binary PATH -time 1h -markdown
//
// It exits with 1 if the server died, took more memory than it may, failed a request of the
// honest client, answered an attack in a way that is not permitted, or did not release what
// it had taken. The times in the table decide nothing, except that some have limits that no
// working machine comes near.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// options are the values of the flags.
type options struct {
	binary, model string
	time          time.Duration
	clients       int
	memory        int64 // MiB
	files         int
	only          string
	attack, url   string // for the process of the attackers
	markdown      bool
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "", "the program to attack")
	flag.StringVar(&o.model, "model", "demo", "the model that it serves")
	flag.DurationVar(&o.time, "time", 2*time.Minute, "how long all attacks take together")
	flag.IntVar(&o.clients, "clients", 10, "clients of an attack at one time")
	flag.Int64Var(&o.memory, "memory", 512, "MiB that the process may take: by a control group where one can be made")
	flag.IntVar(&o.files, "files", 128, "files that the process may have open")
	flag.StringVar(&o.only, "only", "", "attacks whose names have this")
	flag.BoolVar(&o.markdown, "markdown", false, "write the table as Markdown")
	flag.StringVar(&o.attack, "attack", "", "be the attackers of that attack, which end with standard input")
	flag.StringVar(&o.url, "url", "", "where the server is, for -attack")
	flag.Parse()
	if o.attack != "" {
		if err := beAttackers(o.attack, o.url, o.clients); err != nil {
			fmt.Fprintln(os.Stderr, "adversary:", err)
			os.Exit(1)
		}
		return
	}
	if o.binary == "" {
		fmt.Fprintln(os.Stderr, "adversary: -binary names the program to attack")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "adversary:", err)
		os.Exit(1)
	}
}

// warmTime is how long each cache has to fill before anything is measured.
const warmTime = 5 * time.Second

// aloneOf divides an attack's time: for the first part of that length the honest client is
// alone.
const aloneOf = 4

// run runs all attacks. Its error says which ones the server did not pass, and why.
func run(ctx context.Context, o *options) (err error) {
	c := divide()
	p, err := start(ctx, o, &c)
	if err != nil {
		return err
	}
	defer func() {
		if p.stop(); err != nil {
			p.dumpLog()
		}
	}()
	fmt.Printf("%s serves %s at %s in %d MiB (%s), %d files\n", o.binary, o.model, p.url, o.memory, p.limit, o.files)
	fmt.Println(&c)
	stayOn(c.honest)
	h := newHonest(p.url)
	for range 20 { // so that what is made only once exists
		if err := h.ask(ctx); err != nil {
			return fmt.Errorf("before any attack: %w", err)
		}
	}
	for _, a := range slices.Concat([]attack{fill}, grammarAttacks) { // these make the caches take their memory
		if _, _, err = p.attack(&a, o.clients, func() { pause(ctx, warmTime) }); err != nil {
			return err
		}
	}
	pause(ctx, warmTime) // so that the heap is given back to the system
	var chosen []attack
	for _, a := range attacks {
		if strings.Contains(a.name, o.only) {
			chosen = append(chosen, a)
		}
	}
	before := p.settled(ctx, nil)
	each := o.time / time.Duration(max(1, len(chosen)))
	var rows []row
	for _, a := range chosen {
		r, err := one(ctx, p, h, &a, o, each, before)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		rows = append(rows, r)
		fmt.Fprintf(os.Stderr, "%s: %s\n", a.name, r.verdict())
		if r.died {
			break
		}
	}
	fmt.Printf("\nbefore the attacks the process has %d MiB, %d goroutines and %d files\n\n",
		before.rss>>20, before.goroutines, before.files)
	show(rows, o.markdown)
	times, slow := measure(ctx, p)
	fmt.Println()
	for _, t := range times {
		fmt.Println(t)
	}
	failures := []error{ctx.Err(), slow}
	for i := range rows {
		if v := rows[i].verdict(); v != "held" {
			failures = append(failures, fmt.Errorf("%s: %s", rows[i].name, v))
		}
	}
	return errors.Join(failures...)
}

// A row has the results of an attack.
type row struct {
	name    string
	answers tally
	wrong   string // an answer that the attack must not have
	honest  period
	usual   time.Duration
	peak    int64
	limit   int64
	after   usage
	before  usage
	died    bool
}

// one runs one attack with o.clients clients at a time, beside the honest client.
func one(ctx context.Context, p *process, h *honest, a *attack, o *options, d time.Duration, before usage) (r row, err error) {
	r = row{name: a.name, before: before, limit: o.memory << 20}
	alone := h.during(ctx, d/aloneOf) // just before the attack, as other processes may slow the machine
	r.usual = alone.median
	var came outcome
	came, r.peak, err = p.attack(a, o.clients, func() { r.honest = h.during(ctx, d-d/aloneOf) })
	if err != nil {
		return r, err
	}
	r.answers, r.wrong = came.Answers, came.Wrong
	r.after = p.settled(ctx, &before)
	r.died = p.dead()
	return r, nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Small values may grow by this much.
const (
	slackMemory = 24 << 20
	slackCount  = 12
)

// slackTime is how much longer the honest client may wait, in addition to many times its
// usual time: other processes may keep the machine busy.
const slackTime = 20 * time.Second

// verdict returns "held", or what went wrong.
func (r *row) verdict() string {
	switch {
	case r.died:
		return "the process died"
	case r.peak > r.limit*8/10:
		return fmt.Sprintf("%d MiB at most", r.peak>>20)
	case r.honest.lost > 0:
		return fmt.Sprintf("%d honest requests lost: %v", r.honest.lost, r.honest.err)
	case r.wrong != "":
		return r.wrong
	case r.honest.median > 50*r.usual+slackTime:
		return "the honest client waits too long"
	case r.after.rss > r.before.rss+r.before.rss/10+slackMemory:
		return fmt.Sprintf("%d MiB are kept", r.after.rss>>20)
	case r.after.goroutines > r.before.goroutines+slackCount:
		return fmt.Sprintf("%d goroutines are kept", r.after.goroutines)
	case r.after.files > r.before.files+slackCount:
		return fmt.Sprintf("%d files are kept", r.after.files)
	case r.after.held > 0:
		return fmt.Sprintf("%d bytes of request memory are kept", r.after.held)
	}
	return "held"
}

// show prints the table.
func show(rows []row, markdown bool) {
	head := []string{"attack", "tries", "answers", "most memory", "honest: answers, median, worst", "alone: median", "times that", "after: memory, goroutines, files", ""}
	var lines [][]string
	for i := range rows {
		r := &rows[i]
		lines = append(lines, []string{
			r.name, fmt.Sprint(r.answers.total()), r.answers.String(), fmt.Sprintf("%d MiB", r.peak>>20),
			fmt.Sprintf("%d, %v, %v", r.honest.answers, r.honest.median.Round(100*time.Microsecond), r.honest.worst.Round(time.Millisecond)),
			fmt.Sprint(r.usual.Round(100 * time.Microsecond)), fmt.Sprintf("%.1f", float64(r.honest.median)/float64(r.usual)),
			fmt.Sprintf("%d MiB, %d, %d", r.after.rss>>20, r.after.goroutines, r.after.files), r.verdict(),
		})
	}
	if markdown {
		fmt.Printf("| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
		for _, l := range lines {
			fmt.Printf("| %s |\n", strings.Join(l, " | "))
		}
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, l := range lines {
		_, _ = fmt.Fprintln(w, strings.Join(l, "\t"))
	}
	_ = w.Flush()
}
