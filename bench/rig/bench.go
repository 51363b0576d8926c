// Package rig contains what the measures share: the service with its database and location, people and datasets in it, the
// processes of bare twins, loads on the service, and rounds that compare two sides.
package rig

import (
	"context"
	"time"
)

// Measure compares ours with bare. A ratio of 1 means as good as the twin; a higher ratio is better.
type Measure struct {
	Name string
	Goal float64
	Run  func(ctx context.Context, b *Bench) ([]Result, error) // returns the same names in the same order each time
	Twin func(ctx context.Context) error                       // what the process of the bare twin does; nil if there is none

	// ByName is what a measure needs that the stack starts only by name. Such a measure runs only if it is named.
	ByName string
}

type Result struct {
	Name       string
	Ours, Bare string
	Ratio      float64
	Goal       float64 // replaces the goal of the measure, unless 0
	Enough     bool    // an absolute goal is reached, so the ratio does not matter
}

// Bench contains what the measures share.
type Bench struct {
	Dir      string // for logs and files of one measure; removed at the end
	Quernd   string // path of the built program
	Profile  string // folder of CPU profiles; empty for none
	Rounds   int
	Round    time.Duration
	Large    int           // datasets and grants in a large catalog
	Searched int           // datasets in a search
	Sizes    []int         // datasets in catalogs of growing size
	Steady   time.Duration // duration of a load at a constant rate
	Upload   int64         // size of an upload, in bytes
	Uploads  int           // rounds of uploads
	Pickups  int           // jobs that wait for a worker
	Rows     int           // rows of a file
	Loads    int           // rounds of loading the file
	Pages    int           // pages of a document
	Posts    int           // posts of rows to one dataset
	Commits  int
	Columns  int // columns of a wide table
	Queries  int // rounds of one statement
	Smalls   int // statements over few rows
	Colds    int // services without cached files
	Asks     int // questions
	Streams  int // streams on one replica
	Sourced  int // rows of a table of another database
	Listed   int // files of a bucket of a source

	Files     int   // files of one ingestion
	FileSize  int64 // of each, in bytes
	Cluster   int   // rows of a dataset on Trino
	Clustered int   // rounds of a statement on Trino
}

const Longest = time.Hour // limit for one measure
