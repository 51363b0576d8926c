package engine

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"strings"

	"quern.dev/quern/internal/build"
)

// DuckDB is the name of the program in a sealed process.
const DuckDB = "duckdb"

// sources contains the types of the messages between the server and the sealed process, and what they mean.
//
//go:embed *.go
var sources embed.FS

// Version says which server and which quern-engine may work together. Released programs must be of the same release. In other builds
// this package must be the same in both: who changes a message is told to build both again, and who changes anything else is not.
func Version() string {
	if release := build.Release(); release != "" {
		return release
	}

	hash := sha256.New()

	files, _ := fs.Glob(sources, "*") // fails only for a wrong pattern
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			content, _ := sources.ReadFile(file) // cannot fail for a file of the list
			hash.Write(content)
		}
	}

	return "devel-" + hex.EncodeToString(hash.Sum(nil)[:6])
}
