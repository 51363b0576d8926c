// Package web contains the files of the console: those that `make web` wrote into dist, or a page that says how to build them.
//
// dist has no file in the repository but an empty one, without which the program would not compile. So a build needs no Node, and
// building the console changes no file that git knows.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

//go:embed placeholder
var placeholder embed.FS

// Files returns the files of the console, with index.html at the root, and whether they are the real console.
func Files() (files fs.FS, built bool) {
	files, _ = fs.Sub(dist, "dist") // fails only for a name that is no path
	if _, err := fs.Stat(files, "index.html"); err == nil {
		return files, true
	}

	files, _ = fs.Sub(placeholder, "placeholder")

	return files, false
}
