package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
)

// found is a file to upload.
type found struct {
	api.UploadSource

	changed time.Time
}

// collect lists the files that the arguments mean: files, folders with everything below, and patterns that no shell has resolved.
func collect(paths []string) (files []found, empty int, err error) {
	add := func(path string, entry fs.FileInfo) error {
		if entry.Size() == 0 {
			empty++

			return nil
		}

		// Whether it can be read is better known before an hour of sending.
		file, err := os.Open(path)
		if err != nil {
			return exitError{exitOther, err.Error(), "Nothing was sent. Make the file readable, or leave it out."}
		}

		files = append(files, found{api.UploadSource{Name: api.UploadName(path), Path: path, Size: entry.Size()}, entry.ModTime()})

		return file.Close()
	}

	for _, path := range resolve(paths) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, 0, exitError{exitOther, err.Error(), "Nothing was sent."}
		}

		if !info.IsDir() {
			if err := add(path, info); err != nil {
				return nil, 0, err
			}

			continue
		}

		err = filepath.WalkDir(path, func(below string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return exitError{exitOther, err.Error(), "Nothing was sent. Make the folder readable, or leave it out."}
			case strings.HasPrefix(entry.Name(), ".") && below != path: // of editors, of version control
				if entry.IsDir() {
					return filepath.SkipDir
				}

				return nil
			case entry.IsDir():
				return nil
			}

			info, err := os.Stat(below) // what a link leads to
			if err != nil {
				return exitError{exitOther, err.Error(), "Nothing was sent. Repair the link, or leave it out."}
			}

			if !info.Mode().IsRegular() {
				return nil
			}

			return add(below, info)
		})
		if err != nil {
			return nil, 0, err
		}
	}

	if len(files) == 0 {
		return nil, 0, exitError{exitOther, "there is nothing to upload: " + strings.Join(paths, ", "), "Empty files and hidden files do not count."}
	}

	return files, empty, nil
}

func resolve(paths []string) (resolved []string) {
	for _, path := range paths {
		if _, err := os.Lstat(path); err != nil && strings.ContainsAny(path, "*?[") {
			if matches, err := filepath.Glob(path); err == nil && len(matches) > 0 {
				resolved = append(resolved, matches...)

				continue
			}
		}

		resolved = append(resolved, path)
	}

	return resolved
}

const (
	maxFiles = 100    // of a session
	maxParts = 10_000 // of a session
	partSize = 8 << 20
)

// batches are as many files as one session takes, in order.
func batches(files []found) (all [][]found) {
	var (
		current []found
		parts   int64
	)

	for _, file := range files {
		needs := min(maxParts, (file.Size+partSize-1)/partSize)
		if len(current) == maxFiles || parts+needs > maxParts && len(current) > 0 {
			all, current, parts = append(all, current), nil, 0
		}

		current, parts = append(current, file), parts+needs
	}

	return append(all, current)
}

// uploadState is what another run of the same command needs to go on.
type uploadState struct {
	Server  string    `json:"server"`
	Session uuid.UUID `json:"session"`
	Files   []string  `json:"files"`
	Begun   time.Time `json:"begun"`
}

// statePath is the same for the same files, unchanged, on the way to the same server.
func (p *program) statePath(files []found) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, p.server)

	for _, file := range files {
		path, err := filepath.Abs(file.Path)
		if err != nil {
			return "", err
		}

		fmt.Fprintln(hash, path, file.Size, file.changed.UnixNano())
	}

	return filepath.Join(p.home, "uploads", hex.EncodeToString(hash.Sum(nil)[:16])+".json"), nil
}

func readState(path string) (state uploadState, known bool) {
	content, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(content, &state) != nil {
		return state, false
	}

	return state, state.Session != uuid.Nil
}

// forget removes a file that has served.
func forget(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}
