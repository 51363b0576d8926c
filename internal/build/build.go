// Package build tells which version of the programs this is.
package build

import (
	"cmp"
	"runtime/debug"
	"strings"
	"time"
)

// release is the version that `make release` sets; any other build uses the version of its module.
var release string //nolint:gochecknoglobals // set by the linker

// Release returns the version that `make release` set, or an empty text.
func Release() string { return release }

// Info describes the program.
type Info struct {
	Version  string
	Go       string    // version of Go
	Revision string    // of the source code; empty if unknown
	At       time.Time // time of the revision; zero if unknown
}

// Read returns what is known about the program.
func Read() Info {
	info := Info{Version: cmp.Or(release, "devel")}

	found, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}

	info.Version, info.Go = cmp.Or(release, strings.Trim(found.Main.Version, "()"), "devel"), found.GoVersion

	for _, setting := range found.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Revision = setting.Value
		case "vcs.time":
			info.At, _ = time.Parse(time.RFC3339, setting.Value) // unknown if it is not a time
		}
	}

	return info
}
