package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// kind says how a part runs.
type kind int

const (
	blackBox    kind = iota // a black-box test
	raceBox                 // a black-box test; it and the service have the race detector
	packageTest             // tests of packages, with the race detector
	fuzzing                 // all fuzz targets
)

// longPackages have tests with loops that run in full only here.
const longPackages = "catalog engine/duckdb grounding lake values"

// loopCall matches the begin of each function, and each call that makes a test a kill loop.
var loopCall = regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(\w+)|^\s+kill\.Loop\(t\)$`)

// killLoops finds the tests below the folder of the module that call kill.Loop. Tests that need a build tag have commands of their own.
func killLoops(root string) (list []part, err error) {
	for _, folder := range []string{"e2e", "internal"} {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}

			source, err := os.ReadFile(path)
			if err != nil || strings.HasPrefix(string(source), "//go:build ") {
				return err
			}

			pkg, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}

			found, err := loopsOf(string(source), pkg)
			list = append(list, found...)

			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}

			return nil
		}))
	}

	return list, err
}

func loopsOf(source, pkg string) (list []part, err error) {
	var function string

	for _, match := range loopCall.FindAllStringSubmatch(source, -1) {
		switch {
		case match[1] != "":
			function = match[1]
		case !strings.HasPrefix(function, "Test"):
			return nil, fmt.Errorf("%s calls kill.Loop: let the test call it", function)
		case pkg == "e2e":
			list = append(list, part{name: function, row: function, loop: true, kind: blackBox, test: function})
		default:
			name := pkg + " " + function
			list = append(list, part{name: name, row: name, loop: true, kind: packageTest, test: "^" + function + "$", pkg: "./" + pkg})
		}
	}

	return list, nil
}

// otherParts are the parts that are no kill loops, for these black-box tests.
func otherParts(tests []string) (list []part) {
	for pkg := range strings.FieldsSeq(longPackages) {
		name := "internal/" + pkg
		list = append(list, part{name: name, row: name, kind: packageTest, test: "^Test", pkg: "./" + name + "/..."})
	}

	for _, test := range tests {
		list = append(list, part{name: "race " + test, row: "black-box tests with the race detector", kind: raceBox, test: test})
	}

	return append(list, part{name: "guided fuzzing", row: "guided fuzzing", kind: fuzzing})
}

// machine runs parts.
type machine struct {
	root  string // of the module
	work  string
	env   []string
	plain *program
	raced *program // nil until a part needs it
	out   io.Writer
}

func (m *machine) run(ctx context.Context, p part) (passed bool, err error) {
	switch p.kind {
	case blackBox:
		return m.blackBox(ctx, m.plain, p.test)
	case raceBox:
		if m.raced == nil {
			raced := &program{path: filepath.Join(m.work, "race", "e2e.test"), options: m.plain.options, env: append([]string{"QUERN_TEST_RACE=yes"}, m.env...)}
			raced.race = true

			if err := errors.Join(os.MkdirAll(filepath.Dir(raced.path), 0o700), raced.build(ctx)); err != nil {
				return false, err
			}

			m.raced = raced
		}

		return m.blackBox(ctx, m.raced, p.test)
	case packageTest:
		return m.command(ctx, "go", "test", "-race", "-shuffle=on", "-count=1", "-timeout", m.plain.timeout.String(), "-run", p.test, p.pkg)
	default:
		return m.command(ctx, "make", "--no-print-directory", "fuzz", "FUZZ_TIME=1800", "FUZZ_GUIDED=yes")
	}
}

func (m *machine) blackBox(ctx context.Context, p *program, test string) (passed bool, err error) {
	ran := newReport(m.out)
	err = p.run(ctx, test, ran)
	failed := ran.failed([]string{test})

	if ctx.Err() == nil {
		ran.writeLogs(failed)
	}

	return len(failed) == 0, err
}

// command runs a program, and prints the end of its output if it fails.
func (m *machine) command(ctx context.Context, name string, args ...string) (passed bool, err error) {
	command := grouped(exec.CommandContext(ctx, name, args...))
	command.Dir, command.Env = m.root, append(os.Environ(), m.env...)

	printed, err := command.CombinedOutput()
	if command.Process != nil {
		endGroup(command)
	}

	if _, failed := errors.AsType[*exec.ExitError](err); !failed {
		return err == nil, err
	}

	if ctx.Err() == nil {
		lines := strings.SplitAfter(string(printed), "\n")
		fmt.Fprintf(m.out, "--- log of %s %s\n%s", name, strings.Join(args, " "), last(lines))
	}

	return false, nil
}

// close lets the tests remove what they shared.
func (m *machine) close(ctx context.Context) {
	for _, p := range []*program{m.plain, m.raced} {
		if p != nil {
			p.removeShared(ctx)
		}
	}
}

// runTorture runs all parts whose names match.
func runTorture(ctx context.Context, o options, out io.Writer) error {
	work, err := os.MkdirTemp("", "quern-torture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	only, err := regexp.Compile(o.run)
	if err != nil {
		return err
	}

	t := &torture{file: o.torture, killed: filepath.Join(work, "kills"), length: o.length, goal: o.kills, out: out}
	m := &machine{root: ".", work: work, env: []string{"QUERN_TEST_LOOPS=" + o.share, "QUERN_TEST_KILLS=" + t.killed}, out: out}
	t.run = m.run
	o.run = "^Test"
	m.plain = &program{path: filepath.Join(work, "e2e.test"), options: o, env: m.env}

	if err := m.plain.build(ctx); err != nil {
		return err
	}

	defer func() { m.close(context.WithoutCancel(ctx)) }()

	tests, err := m.plain.list(ctx)
	if err != nil {
		return err
	}

	loops, err := killLoops(m.root)
	if err != nil {
		return err
	}

	if t.version, err = versionOf(ctx, m.root); err != nil {
		return err
	}

	for _, p := range append(loops, otherParts(tests)...) {
		if only.MatchString(p.name) {
			t.parts = append(t.parts, p)
		}
	}

	if len(t.parts) == 0 {
		return fmt.Errorf("no part matches %q", only)
	}

	return t.runAll(ctx)
}
