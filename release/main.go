// Release builds the published files: `quern` for every system, `quernd` with `quern-engine` for Linux, each
// with its licence, a list of its modules (CycloneDX) and checksums. The same commit produces the same bytes. docs/release.md describes it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	var (
		out     = flag.String("out", "dist", "folder for the files; its content is removed")
		version = flag.String("version", "", "version to set (default: the output of git describe)")
		only    = flag.String("only", "", "build only this target, such as quern_linux_amd64")
	)

	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if err := release(ctx, *out, *version, *only); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// target is an archive with one program for one system; that of quernd has quern-engine too.
type target struct {
	program, system, processor string
	compiler                   string // C compiler for the engine; empty if the archive has none
}

// engine is the program that quernd starts. It contains DuckDB, which is C++.
const engine = "quern-engine"

func (t target) String() string { return t.program + "_" + t.system + "_" + t.processor }

// programs returns the programs in the archive.
func (t target) programs() []string {
	if t.program == "quernd" {
		return []string{t.program, engine}
	}

	return []string{t.program}
}

// file returns the file name of a program on the system.
func (t target) file(program string) string {
	if t.system == "windows" {
		return program + ".exe"
	}

	return program
}

func release(ctx context.Context, out, version, only string) error {
	if version = cmp.Or(version, describe(ctx)); version == "" {
		return errors.New("git describe gives no version: use -version")
	}

	date, err := commitDate(ctx)
	if err != nil {
		return err
	}

	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil { //nolint:gosec // it is handed out
		return err
	}

	tools, err := os.MkdirTemp("", "quern-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tools) }()

	tool, err := buildBillTool(ctx, tools)
	if err != nil {
		return err
	}

	built := 0

	for _, t := range targets() {
		if only != "" && only != t.String() {
			continue
		}

		began := time.Now()

		if err := t.release(ctx, tool, out, version, date); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}

		fmt.Fprintf(os.Stdout, "%s  %s\n", t, time.Since(began).Round(time.Second))

		built++
	}

	if built == 0 {
		return fmt.Errorf("no target %q on this machine", only)
	}

	return checksums(out)
}

// targets returns the targets that this machine can build.
func targets() (list []target) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, processor := range []string{"amd64", "arm64"} {
			list = append(list, target{"quern", system, processor, ""})
		}
	}

	for _, processor := range []string{"amd64", "arm64"} {
		compiler := map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}[processor]
		if runtime.GOOS == "linux" && runtime.GOARCH == processor {
			compiler = "gcc"
		}

		// DuckDB is C++, so each processor needs its own compiler.
		if path, err := exec.LookPath(compiler); err == nil {
			list = append(list, target{"quernd", "linux", processor, path})
		} else {
			fmt.Fprintf(os.Stdout, "quernd_linux_%s  skipped: %s is not installed; build it on a machine of this kind\n", processor, compiler)
		}
	}

	return list
}

// release builds the programs and writes them into an archive, together with its other files.
func (t target) release(ctx context.Context, tool, out, version string, date time.Time) error {
	work, err := os.MkdirTemp("", "quern-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()

	if err := t.checkConsole("web/dist"); err != nil {
		return err
	}

	suffix := fmt.Sprintf("_%s_%s_%s", strings.TrimPrefix(version, "v"), t.system, t.processor)
	name := t.program + suffix

	var files []packed

	for _, program := range t.programs() {
		binary := filepath.Join(work, program)
		if err := t.build(ctx, program, binary, version); err != nil {
			return err
		}

		if err := bill(ctx, tool, binary, filepath.Join(out, program+suffix+".cdx.json"), version); err != nil {
			return err
		}

		files = append(files, packed{binary, t.file(program), 0o755})
	}

	files = append(files, packed{"LICENSE", "LICENSE", 0o644}, packed{"README.md", "README.md", 0o644})
	if t.program == "quernd" {
		files = append(files, packed{"deploy/quernd.service", "quernd.service", 0o644})
	}

	if t.system == "windows" {
		return writeZip(filepath.Join(out, name+".zip"), name, files, date)
	}

	return writeTar(filepath.Join(out, name+".tar.gz"), name, files, date)
}

// checkConsole fails if the program would contain the page that stands for the console.
func (t target) checkConsole(dist string) error {
	if t.program != "quernd" {
		return nil
	}

	if _, err := os.Stat(filepath.Join(dist, "index.html")); err != nil {
		return fmt.Errorf("the console is not built: run `make web` first: %w", err)
	}

	return nil
}

func (t target) build(ctx context.Context, program, binary, version string) error {
	// No path of this machine, no state of its git repository and no build ID: the same commit produces the same bytes.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= -X quern.dev/quern/internal/build.release="+version, //nolint:gosec // whoever runs it says which
		"-o", binary, "./cmd/"+program)
	build.Env = append(os.Environ(), "GOOS="+t.system, "GOARCH="+t.processor, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "CGO_ENABLED=0")
	build.Stderr = os.Stderr

	if program == engine {
		build.Env = append(build.Env, "CGO_ENABLED=1", "CC="+t.compiler, "CXX="+strings.TrimSuffix(t.compiler, "gcc")+"g++")
	}

	return build.Run()
}

// describe returns the version from git: the tag, or the last tag and the commits after it.
func describe(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return ""
	}

	return strings.TrimSpace(string(text))
}

// commitDate returns the time that all files get, so that their bytes do not depend on the time of the build.
func commitDate(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")

	if text == "" {
		commit, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("reading the date of the commit (set SOURCE_DATE_EPOCH to build without git): %w", err)
		}

		text = strings.TrimSpace(string(commit))
	}

	seconds, err := strconv.ParseInt(text, 10, 64)

	return time.Unix(seconds, 0).UTC(), err
}
