package load

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Trace holds the times of recorded requests, and the lengths of their prompts and answers.
type Trace struct {
	Name     string
	Arrivals []Arrival // in the order of time
	Speed    float64   // the times are divided by it; 0 means 1
}

// An Arrival is one request of a trace.
type Arrival struct {
	At     time.Duration // since the first one
	Prompt int           // tokens
	Answer int           // tokens, at least 1
	// Blocks identify the contents of the prompt, in runs of 512 tokens: prompts share a beginning
	// as long as their blocks are equal.
	Blocks []uint64
}

// traceBlock is how many tokens one number of hash_ids stands for.
const traceBlock = 512

// mostArrivals is more than any run sends.
const mostArrivals = 1 << 22

// The names of fields in public traces, in any case: those of Mooncake and vLLM, Azure, and
// BurstGPT.
var (
	timeNames   = []string{"timestamp", "arrived_at", "time"}
	promptNames = []string{"input_length", "contexttokens", "input_tokens", "prompt_tokens", "request tokens", "num_prefill_tokens"}
	answerNames = []string{"output_length", "generatedtokens", "output_tokens", "completion_tokens", "response tokens", "num_decode_tokens"}
)

// ReadTrace reads a trace of JSON objects, one a line, or of CSV with a head. Times are dates or
// numbers: milliseconds in objects, seconds in CSV. An answer of no tokens counts as one token.
func ReadTrace(name string, r io.Reader) (*Trace, error) {
	t := &Trace{Name: name}
	in := bufio.NewReader(r)
	begin, err := in.Peek(1)
	for err == nil && len(bytes.TrimSpace(begin)) == 0 {
		_, _ = in.Discard(1) // it was peeked at
		begin, err = in.Peek(1)
	}
	var times []float64 // seconds
	add := func(line int, row map[string]any, unit float64) error {
		at, a, err := arrival(row, unit)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if len(times) == mostArrivals {
			return fmt.Errorf("%s has more than %d requests", name, mostArrivals)
		}
		times, t.Arrivals = append(times, at), append(t.Arrivals, a)
		return nil
	}
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case begin[0] == '{':
		err = readJSONLines(name, in, add)
	default:
		err = readCSV(name, in, add)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("%s has no requests", name)
	}
	first := slices.Min(times)
	for i := range t.Arrivals {
		t.Arrivals[i].At = time.Duration(min((times[i]-first), longestTrace.Seconds()) * float64(time.Second))
	}
	slices.SortStableFunc(t.Arrivals, func(a, b Arrival) int { return int(min(max(a.At-b.At, -1), 1)) })
	return t, nil
}

// longestTrace bounds times: no run takes that long.
const longestTrace = 10 * 365 * 24 * time.Hour

func readJSONLines(name string, r io.Reader, add func(int, map[string]any, float64) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	n := 0
	for lines.Scan() {
		if n++; len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var row map[string]any
		in := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		in.UseNumber()
		if err := in.Decode(&row); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if err := add(n, row, 1e-3); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", name, n+1, err)
	}
	return nil
}

func readCSV(name string, r io.Reader, add func(int, map[string]any, float64) error) error {
	in := csv.NewReader(r)
	in.ReuseRecord, in.TrimLeadingSpace = true, true
	head, err := in.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	head = slices.Clone(head)
	head[0] = strings.TrimPrefix(head[0], "\ufeff")
	row := map[string]any{}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for i, cell := range cells {
			row[head[i]] = cell
		}
		line, _ := in.FieldPos(0)
		if err := add(line, row, 1); err != nil {
			return err
		}
	}
}

// arrival parses a row. unit is the seconds of one unit of its times.
func arrival(row map[string]any, unit float64) (at float64, a Arrival, err error) {
	when, err := column(row, timeNames)
	if err == nil {
		at, err = instant(when, unit)
	}
	if err == nil {
		a.Prompt, err = count(row, promptNames, 1)
	}
	if err == nil {
		a.Answer, err = count(row, answerNames, 0)
		a.Answer = max(1, a.Answer)
	}
	if err != nil {
		return 0, a, err
	}
	hashes, _ := row["hash_ids"].([]any)
	if len(hashes) > 0 && len(hashes) != (a.Prompt+traceBlock-1)/traceBlock {
		return 0, a, fmt.Errorf("%d hash_ids for a prompt of %d tokens: want one for each %d", len(hashes), a.Prompt, traceBlock)
	}
	for _, v := range hashes {
		hash, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
		if err != nil {
			return 0, a, fmt.Errorf("%.30q in hash_ids is no whole number", fmt.Sprint(v))
		}
		a.Blocks = append(a.Blocks, uint64(hash))
	}
	return at, a, nil
}

// column returns the value of the first of names that row has.
func column(row map[string]any, names []string) (string, error) {
	for _, name := range names {
		for key, v := range row {
			if v != nil && strings.EqualFold(strings.TrimSpace(key), name) {
				return strings.TrimSpace(fmt.Sprint(v)), nil
			}
		}
	}
	return "", fmt.Errorf("there is no field %s", strings.Join(names, " or "))
}

func count(row map[string]any, names []string, least int) (int, error) {
	text, err := column(row, names)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(text, 64) // some traces write 12.0
	if n := int(v); err == nil && float64(n) == v && n >= least && n <= maxLength {
		return n, nil
	}
	return 0, fmt.Errorf("%.30q tokens: want a number from %d to %d", text, least, maxLength)
}

// dates are the formats of times that are not numbers. Each may have a fraction of a second.
var dates = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04:05"}

func instant(text string, unit float64) (seconds float64, err error) {
	if v, err := strconv.ParseFloat(text, 64); err == nil && v-v == 0 {
		return v * unit, nil
	}
	for _, layout := range dates {
		if t, err := time.Parse(layout, text); err == nil {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9, nil
		}
	}
	return 0, fmt.Errorf("%.40q is no time: want a number, or a date such as 2023-11-16 18:15:46.68", text)
}

// times yields the times at which requests are due.
func (t *Trace) times() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for i := range t.Arrivals {
			at := t.Arrivals[i].At
			if t.Speed > 0 {
				at = time.Duration(float64(at) / t.Speed)
			}
			if !yield(at) {
				return
			}
		}
	}
}
