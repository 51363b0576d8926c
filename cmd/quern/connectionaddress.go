package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// addressFlags are the flags for a connection to addresses. The user and the password have those of a database.
type addressFlags struct{ base, token, ca string }

func (f *addressFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.base, "url", "", "address with which those of files begin, such as https://data.example.com/exports/, instead of --endpoint")
	flags.StringVar(&f.token, "token-file", "", "file with a token for --url or --catalog; - reads it from the standard input")
	flags.StringVar(&f.ca, "ca-file", "", "PEM file with the authority of the certificate of --url or --catalog")
}

func (f *addressFlags) read(command *cobra.Command, user, password string) (*api.NewHTTPSSettings, error) {
	settings := &api.NewHTTPSSettings{BaseURL: f.base}

	switch {
	case f.token != "" && user != "":
		return nil, usageError{errors.New("give --token-file, or --user with --password-file, not both"), "quern connection create"}
	case f.token != "":
		token, err := readSecret(command, f.token)
		if err != nil {
			return nil, err
		}

		settings.Token = &token
	case user != "":
		secret, err := readSecret(command, password)
		if err != nil {
			return nil, err
		}

		settings.User, settings.Password = &user, &secret
	}

	var err error
	settings.CaCertificate, err = f.authority()

	return settings, err
}

// authority returns the text of the file with the authority; nil if there is none.
func (f *addressFlags) authority() (*string, error) {
	if f.ca == "" {
		return nil, nil //nolint:nilnil // those that the service knows
	}

	text, err := os.ReadFile(f.ca)

	return new(string(text)), err
}

// moreThanOne reports whether more than one text is not empty.
func moreThanOne(texts ...string) bool {
	count := 0

	for _, text := range texts {
		if text != "" {
			count++
		}
	}

	return count > 1
}
