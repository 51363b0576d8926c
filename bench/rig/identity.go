package rig

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"quern.dev/quern/stack"
)

// issuerURL returns the address of the realm that the stack provides for tests and measures.
func issuerURL() (string, error) {
	keycloak, err := stack.Lookup("QUERN_TEST_KEYCLOAK_URL")

	return keycloak + "/realms/quern", err
}

// AccessToken signs a user of the stack's realm in. The token is valid for 5 minutes.
func AccessToken(ctx context.Context, user string) (string, error) {
	issuer, err := issuerURL()
	if err != nil {
		return "", err
	}

	form := url.Values{
		"grant_type": {"password"}, "client_id": {"quern-console"}, "scope": {"openid"},
		"username": {user}, "password": {user + "-pw"},
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer+"/protocol/openid-connect/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}

	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	body, err := Get(request)
	if err != nil {
		return "", err
	}

	var answer struct {
		AccessToken string `json:"access_token"`
	}

	return answer.AccessToken, json.Unmarshal(body, &answer)
}
