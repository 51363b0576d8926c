package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/signin"
)

func (p *program) loginCommand() *cobra.Command {
	var (
		issuerAddress, flow string
		offline             bool
		as                  = clientAs{scope: "openid"}
	)

	command := &cobra.Command{
		Use:   "login [SERVER]",
		Short: "Sign in at a server",
		Long: `Sign in at a server. Open the printed address in any browser, on this machine or another; the command continues when you have
signed in. If the issuer has no device grant, the browser must be on this machine. The tokens are stored in a file that only you
can read, and renewed when they expire. Later commands use the server of the last login.

Programs use an API token instead: create one with ` + "`quern token create`" + ` and set QUERN_TOKEN.`,
		Example: "  quern login https://quern.example.org",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := p.loginServer(args)
			if err != nil {
				return err
			}

			ctx := cmd.Context()

			if issuerAddress == "" {
				if issuerAddress, err = issuerOf(ctx, server); err != nil {
					return fmt.Errorf("reading the issuer of %s: %w", server, err)
				}
			}

			found, err := discover(ctx, issuerAddress)
			if err != nil {
				return err
			}

			if offline {
				as.scope += " offline_access"
			}

			given, err := p.signIn(cmd, found, as, flow)
			if err != nil {
				return err
			}

			kept := signIn{signin.Entry{Issuer: found.Issuer, TokenEndpoint: found.TokenEndpoint, ClientID: as.id}}.with(given)
			if err := p.changeCredentials(func(all *credentials) { all.Current, all.Servers[server] = server, kept }); err != nil {
				return err
			}

			// The token of the environment would hide which user has just signed in.
			client, err := api.Connect(api.Settings{Server: server, Token: p.renewed})
			if err != nil {
				return err
			}

			p.server = server

			me, err := api.Read[api.Me](client.GetMe(ctx))
			if err != nil {
				return err
			}

			p.out.printf("Signed in at %s as %s.\n", server, p.out.style(bold, me.Username))

			if os.Getenv("QUERN_TOKEN") != "" {
				p.err.printf("QUERN_TOKEN is set, and commands use it instead of this sign-in.\n")
			}

			return nil
		},
	}
	command.Flags().StringVar(&issuerAddress, "issuer", "", "address of the OpenID Connect issuer (default: the issuer that the server publishes)")
	command.Flags().StringVar(&as.id, "client-id", "quern-cli", "client id of this program at the issuer")
	command.Flags().BoolVar(&offline, "offline", false, "request a sign-in that outlives the session at the issuer (offline_access); some issuers renew only these")
	command.Flags().StringVar(&flow, "flow", "", "device or browser (default: device, if the issuer has it)")

	return command
}

func (p *program) loginServer(args []string) (string, error) {
	server := p.server
	if len(args) == 1 {
		server = args[0]
	}

	if server == "" {
		server = os.Getenv("QUERN_SERVER")
	}

	if server == "" {
		kept, err := p.readCredentials()
		if err != nil {
			return "", err
		}

		server = kept.Current
	}

	if server = serverAddress(server); server == "" {
		return "", usageError{errors.New("no server: give its address, for example quern login https://quern.example.org"), "quern login"}
	}

	if !confidential(server) {
		return "", fmt.Errorf("the connection to %s is not encrypted, so your token could be read by others; use https", server)
	}

	return server, nil
}

func (p *program) signIn(cmd *cobra.Command, at issuer, as clientAs, flow string) (granted, error) {
	if flow == "" {
		flow = "device"
		if at.DeviceAuthorizationEndpoint == "" {
			flow = "browser"
		}
	}

	switch flow {
	case "device":
		if at.DeviceAuthorizationEndpoint == "" {
			return granted{}, exitError{exitOther, "the issuer has no device grant", "Use --flow browser."}
		}

		return at.byDevice(cmd.Context(), as, func(address, code string) {
			p.err.printf("Open this address and sign in:\n\n  %s\n\nThe code is %s. Waiting; press Ctrl-C to stop.\n", address, p.err.style(bold, code))
		})
	case "browser":
		return at.byBrowser(cmd.Context(), as, func(address string) {
			p.err.printf("Sign in with the browser that opens. If none opens, open this address on this machine:\n\n  %s\n\nWaiting; press Ctrl-C to stop.\n", address)

			if p.err.screen {
				openBrowser(cmd, address)
			}
		})
	default:
		return granted{}, usageError{fmt.Errorf("--flow must be device or browser, not %q", flow), "quern login"}
	}
}

// openBrowser tries to open a browser; if that fails, the user can open the printed address.
func openBrowser(cmd *cobra.Command, address string) {
	program, args := "xdg-open", []string{address}

	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}

	browser := exec.CommandContext(cmd.Context(), program, args...)
	if browser.Start() == nil {
		go func() { _ = browser.Wait() }()
	}
}

func (p *program) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Sign out from the server", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := p.tokens(); err != nil {
				return err
			}

			err := p.changeCredentials(func(all *credentials) {
				if delete(all.Servers, p.server); all.Current == p.server {
					all.Current = ""
				}
			})
			if err != nil {
				return err
			}

			p.out.printf("Signed out from %s.\n", p.server)

			return nil
		},
	}
}
