package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// packed is a file to be added to an archive.
type packed struct {
	from, to string
	mode     fs.FileMode
}

// writeTar writes files into a folder of an archive, without any attribute of this machine.
func writeTar(path, folder string, files []packed, date time.Time) error {
	return create(path, func(w io.Writer) error {
		compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}

		archive := tar.NewWriter(compressed)

		for _, file := range files {
			content, err := os.ReadFile(file.from)
			if err != nil {
				return err
			}

			header := &tar.Header{Name: folder + "/" + file.to, Mode: int64(file.mode), Size: int64(len(content)), ModTime: date, Format: tar.FormatPAX}
			if err := archive.WriteHeader(header); err != nil {
				return err
			}

			if _, err := archive.Write(content); err != nil {
				return err
			}
		}

		return errors.Join(archive.Close(), compressed.Close())
	})
}

func writeZip(path, folder string, files []packed, date time.Time) error {
	return create(path, func(w io.Writer) error {
		archive := zip.NewWriter(w)

		for _, file := range files {
			content, err := os.ReadFile(file.from)
			if err != nil {
				return err
			}

			header := &zip.FileHeader{Name: folder + "/" + file.to, Method: zip.Deflate, Modified: date}
			header.SetMode(file.mode)

			entry, err := archive.CreateHeader(header)
			if err != nil {
				return err
			}

			if _, err := entry.Write(content); err != nil {
				return err
			}
		}

		return archive.Close()
	})
}

func create(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}

	return errors.Join(write(file), file.Close())
}

// checksums writes the checksums of all files in the folder, in the format of sha256sum -c.
func checksums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}

	return create(filepath.Join(folder, "SHA256SUMS"), func(w io.Writer) error {
		for _, entry := range entries {
			content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				return err
			}

			if _, err := fmt.Fprintf(w, "%x  %s\n", sha256.Sum256(content), entry.Name()); err != nil {
				return err
			}
		}

		return nil
	})
}
