// Gen writes the generated files of package kernels: formats.h, which states package tensor's
// formats for CUDA C++; the PTX of every family, for the base (sm_80) and for Hopper (sm_90a);
// and layouts.txt, the offsets that clang gives the fields of the kernels' arguments. It runs in
// the folder of package kernels and needs clang 19.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
)

// The targets: the base, and Hopper.
const (
	base   = "sm_80"
	hopper = "sm_90a"
)

func main() {
	only := flag.String("only", "", "compile only the families whose names match this regular expression")
	sources := flag.String("sources", "", "write the families' sources to this folder, and nothing else")
	flag.Parse()
	if err := run(*only, *sources); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(only, sources string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	all, err := families()
	if err != nil {
		return err
	}
	if sources != "" {
		for _, f := range all {
			if err := os.WriteFile(filepath.Join(sources, f.name+".cc"), []byte(f.source), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.WriteFile("formats.h", header(), 0o644); err != nil {
		return err
	}
	layouts := make([]layout, len(all))
	var jobs []func() error
	for i, f := range all {
		jobs = append(jobs, func() (err error) { layouts[i], err = f.layout(); return err })
		if !match.MatchString(f.name) {
			continue
		}
		for _, target := range f.targets() {
			jobs = append(jobs, func() error { return f.compile(target) })
		}
	}
	if err := parallel(jobs); err != nil {
		return err
	}
	if err := removeOthers(all); err != nil {
		return err
	}
	text, err := layoutText(layouts)
	if err != nil {
		return err
	}
	return os.WriteFile("layouts.txt", text, 0o644)
}

// parallel runs all jobs, as many at a time as there are processors.
func parallel(jobs []func() error) error {
	errs := make([]error, len(jobs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				errs[i] = jobs[i]()
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// targets returns the family's targets.
func (f *family) targets() []string {
	if f.only != "" {
		return []string{f.only}
	}
	return []string{base, hopper}
}

func (f *family) file(target string) string {
	return filepath.Join("ptx", f.name+"."+target+".ptx.gz")
}

// compile writes the family's PTX for a target, unless the file is up to date.
func (f *family) compile(target string) error {
	text, err := f.clang(target, "-O3", "-S")
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(f.file(target)); err == nil {
		if r, err := gzip.NewReader(bytes.NewReader(old)); err == nil {
			if same, err := io.ReadAll(r); err == nil && bytes.Equal(text, same) {
				return nil
			}
		}
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(f.file(target), b.Bytes(), 0o644)
}

// clang returns the compiler's output for the family.
func (f *family) clang(target string, options ...string) ([]byte, error) {
	program := os.Getenv("CLANG")
	if program == "" {
		program = "clang-19"
	}
	args := append([]string{
		"-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=" + target, "--cuda-feature=+ptx81", "-std=c++20",
		"-ffp-contract=off", "-fno-exceptions", "-Wall", "-Wextra", "-Werror", "-I.", "-o", "-", "-",
	}, options...)
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(f.source)
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s for %s: %w\n%s", f.name, target, err, said.Bytes())
	}
	return text, nil
}

// removeOthers removes the PTX of families that no longer exist.
func removeOthers(all []family) error {
	have := map[string]bool{}
	for _, f := range all {
		for _, target := range f.targets() {
			have[f.file(target)] = true
		}
	}
	files, err := filepath.Glob("ptx/*")
	if err != nil {
		return err
	}
	for _, f := range files {
		if !have[f] {
			err = errors.Join(err, os.Remove(f))
		}
	}
	return err
}
