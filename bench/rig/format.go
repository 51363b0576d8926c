package rig

import (
	"fmt"
	"time"
)

func Seconds(nanoseconds float64) string {
	return fmt.Sprintf("%.2fs", nanoseconds/float64(time.Second))
}

func Megabytes(bytes int64) string { return fmt.Sprintf("%dMB", bytes/1e6) }

func Milliseconds(nanoseconds float64) string {
	return fmt.Sprintf("%.2fms", nanoseconds/float64(time.Millisecond))
}

func PerSecond(bytes float64) string { return fmt.Sprintf("%.0fMB/s", bytes/1e6) }

func Kibibytes(bytes int64) string { return fmt.Sprintf("%.1fKiB", float64(bytes)/(1<<10)) }
