//go:build unix

package tracker

import (
	"context"
	"fmt"

	sdk "code.gitea.io/sdk/gitea"
)

// Account is an account on the server with a token of its own.
type Account struct {
	ID    int64
	Login string
	// Token is good for everything the account may do.
	Token string
}

// BotScopes are the token scopes the bot is run with: the fewest that do.
var BotScopes = []string{"write:issue", "read:repository", "read:user", "read:organization"}

// client speaks as an account, for the calls of one context: the SDK keeps the
// context in the client, so that clients are not shared.
func (s *Server) client(ctx context.Context, options ...sdk.ClientOption) (*sdk.Client, error) {
	options = append(options, sdk.SetContext(ctx), sdk.SetHTTPClient(s.http), sdk.SetGiteaVersion(""))
	return sdk.NewClient(s.URL, options...)
}

// As gives a client that speaks as the account, which is made if need be.
func (s *Server) As(ctx context.Context, login string) (*sdk.Client, error) {
	account, err := s.Account(ctx, login)
	if err != nil {
		return nil, err
	}
	return s.client(ctx, sdk.SetToken(account.Token))
}

// Account returns an account, made on first use. It is an ordinary one; only
// the operator, who is there from the start, administers the site.
func (s *Server) Account(ctx context.Context, login string) (Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if account, ok := s.accounts[login]; ok {
		return account, nil
	}
	admin, err := s.client(ctx, sdk.SetToken(s.accounts[operator].Token))
	if err != nil {
		return Account{}, err
	}
	keep := false
	_, _, err = admin.AdminCreateUser(sdk.CreateUserOption{
		Username: login, Email: login + "@example.org", Password: s.Password, MustChangePassword: &keep,
	})
	if err != nil {
		return Account{}, fmt.Errorf("make account %s: %w", login, err)
	}
	if err := s.adoptLocked(ctx, login); err != nil {
		return Account{}, err
	}
	return s.accounts[login], nil
}

// Token makes a token of the account for certain scopes only, such as
// BotScopes.
func (s *Server) Token(ctx context.Context, login string, scopes []string) (string, error) {
	if _, err := s.Account(ctx, login); err != nil {
		return "", err
	}
	return s.token(ctx, login, s.fresh("token"), scopes)
}

func (s *Server) token(ctx context.Context, login, name string, scopes []string) (string, error) {
	c, err := s.client(ctx, sdk.SetBasicAuth(login, s.Password))
	if err != nil {
		return "", err
	}
	option := sdk.CreateAccessTokenOption{Name: name}
	for _, scope := range scopes {
		option.Scopes = append(option.Scopes, sdk.AccessTokenScope(scope))
	}
	token, _, err := c.CreateAccessToken(option)
	if err != nil {
		return "", fmt.Errorf("make a token of %s: %w", login, err)
	}
	return token.Token, nil
}

func (s *Server) adopt(ctx context.Context, login string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.adoptLocked(ctx, login)
}

// adoptLocked takes in an account that has just been made.
func (s *Server) adoptLocked(ctx context.Context, login string) error {
	token, err := s.token(ctx, login, "sandbox", []string{string(sdk.AccessTokenScopeAll)})
	if err != nil {
		return err
	}
	c, err := s.client(ctx, sdk.SetToken(token))
	if err != nil {
		return err
	}
	me, _, err := c.GetMyUserInfo()
	if err != nil {
		return fmt.Errorf("read account %s: %w", login, err)
	}
	s.accounts[login] = Account{ID: me.ID, Login: me.UserName, Token: token}
	return nil
}

// fresh makes a name that this server has not seen.
func (s *Server) fresh(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return fmt.Sprintf("%s-%d", name, s.serial)
}
