package planner

import "quern.dev/quern/internal/form"

// Schema returns what the compiler of forms knows about datasets. A form that a model fills is compiled with the same
// knowledge as one of the planner.
func Schema(datasets []Dataset) *form.Schema { return &newWorld(datasets).schema }
