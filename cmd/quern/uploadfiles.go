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

// collect returns the files that the arguments name: files, folders with everything below, and patterns that the shell
// did not resolve.
func collect(paths []string) (files []found, empty int, err error) {
	add := func(path string, entry fs.FileInfo) error {
		if entry.Size() == 0 {
			empty++

			return nil
		}

		// Check that the file can be read before an hour of sending.
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
			return nil, 0, exitError{exitOther, err.Error(), "Nothing was sent. Check the name of the file."}
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
			case strings.HasPrefix(entry.Name(), ".") && below != path: // files of editors and version control
				if entry.IsDir() {
					return filepath.SkipDir
				}

				return nil
			case entry.IsDir():
				return nil
			}

			info, err := os.Stat(below) // the target of a link
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
		return nil, 0, exitError{exitOther, "no files to upload: " + strings.Join(paths, ", "), "Empty and hidden files are omitted."}
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
	maxFiles = 100    // per session
	maxParts = 10_000 // per session
	partSize = 8 << 20
)

// batches splits the files, in order, into groups that fit into one session each.
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

// uploadState is what another execution of the same command needs to continue the upload.
type uploadState struct {
	Server  string    `json:"server"`
	Session uuid.UUID `json:"session"`
	Files   []string  `json:"files"`
	Begun   time.Time `json:"begun"`
}

// statePath returns the path of the state file. It is the same for the same unchanged files and the same server.
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

// forget removes a state file that is no longer needed.
func forget(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}
