package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"playbook-bot/playbook"
)

// Rights are what the caller's account may do.
type Rights struct {
	Standing             playbook.Standing
	BreakGlassAuthorized bool
}

// ToolOptions configures the tools served to agents. Each server is one
// caller's: what a token may is fixed before the first message.
type ToolOptions struct {
	// Version of the program; "dev".
	Version string
	// Playbook decides; nil: the embedded one.
	Playbook *playbook.Playbook
	// Account is the forge account that the caller's token belongs to; empty:
	// none, with standing none, and nothing can be filed.
	Account string
	// Rights reads what Account may do in a repository ("owner/repo", or empty
	// where none is named). Nil: standing none. An error is standing unknown.
	Rights func(ctx context.Context, repository, action string) (Rights, error)
	// Desk takes filings; nil: the tools that need one are not offered.
	Desk Desk
	// Now is the gate's clock; time.Now.
	Now func() time.Time
	// Logger gets what a caller may not see. Nil: nothing.
	Logger *slog.Logger
	// Schemas may be shared by the servers of a program to spare reflection.
	Schemas *sdk.SchemaCache
}

// maxArgument bounds a text argument, in bytes.
const maxArgument = 1 << 20

type tools struct {
	o ToolOptions
	p *playbook.Playbook
}

// NewServer makes an MCP server that offers the playbook: the pure functions,
// and, with a desk, filing. No tool restarts anything.
func NewServer(o ToolOptions) *sdk.Server {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Playbook == nil {
		o.Playbook = playbook.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &tools{o: o, p: o.Playbook}
	s := sdk.NewServer(&sdk.Implementation{Name: "playbook-bot", Title: "Recovery playbook", Version: o.Version}, &sdk.ServerOptions{
		SchemaCache: o.Schemas,
		Instructions: "Asks the recovery playbook before anything is restarted. Start with recommend_actions; log what you tried with build_attempt_record " +
			"or record_attempt; ask for a broad restart with request_mcp_restart. No tool here restarts anything. A refusal is an ordinary result: do what its next line says.",
	})
	t.addPure(s)
	t.addFiling(s)
	return s
}

func (t *tools) addPure(s *sdk.Server) {
	add(s, "assess_escalation", "Would this restart be approved?",
		"Asks the gate about one action: the class matrix first, then, for the broad restarts, the log of narrower attempts or break-glass. Changes nothing.",
		true, decisionSchema, t.assess)
	add(s, "recommend_actions", "What to try next",
		"Gives the narrowest recovery action to try now for these symptoms, skipping what was tried already, and the ladder from there. Changes nothing.",
		true, recommendationSchema, t.recommend)
	add(s, "build_attempt_record", "Make an attempt record",
		"Makes a valid record of one recovery attempt, ready for prior_recovery_attempts_json or an issue, or says everything that is wrong with it. Stores nothing.",
		true, recordSchema, t.build)
	add(s, "recovery_ladder", "The ladder",
		"Gives the whole playbook: rungs from narrow to broad, gates, outcomes, symptoms and who may ask for what. Changes nothing.",
		true, ladderSchema, t.ladder)
	add(s, "recovery_metrics", "How recoveries went",
		"Counts attempts by action and outcome, and the fraction of recoveries that avoided a full restart (null where nothing recovered). Changes nothing.",
		true, metricsSchema, t.metrics)
	add(s, "evaluate_restart_impact", "What a restart would end",
		"Reads an inventory of what is alive and says which sessions, tasks, input keys and leases a restart would end, and which calls in flight may have executed and must not be replayed. Changes nothing.",
		true, impactSchema, t.impact)
}

func (t *tools) addFiling(s *sdk.Server) {
	const about = "Asks for a restart of an MCP server and gives the gate's answer. With file_in it also files the request as an issue, where people can endorse it. " +
		"It never restarts a process. Filing the same open request again returns the first."
	for _, name := range []string{"request_mcp_restart", "gitea_request_mcp_restart"} {
		add(s, name, "Ask for a restart", about, false, decisionSchema,
			func(ctx context.Context, in requestIn) (string, any, error) { return t.request(ctx, name, in) })
	}
	if t.o.Desk == nil {
		return
	}
	add(s, "record_attempt", "Log an attempt in an issue",
		"Posts one recovery attempt into the issue of a request, where it counts. Posting it twice counts once.",
		false, filedSchema, t.recordAttempt)
	add(s, "recovery_request_status", "How a request stands",
		"Gives the decision in force for a request: its state, its verdict, what is still missing, and the line to post.",
		true, decisionSchema, t.status)
}

// add registers a tool whose handler gives the text for hosts that drop
// structured output, and the structured output.
func add[In any](s *sdk.Server, name, title, about string, readOnly bool, output any, f func(context.Context, In) (string, any, error)) {
	no := false
	sdk.AddTool(s, &sdk.Tool{
		Name: name, Title: title, Description: about, OutputSchema: output,
		Annotations: &sdk.ToolAnnotations{Title: title, ReadOnlyHint: readOnly, IdempotentHint: readOnly, DestructiveHint: &no, OpenWorldHint: &no},
	}, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		text, out, err := f(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, out, nil
	})
}

// claims are standing and authorization as the caller states them. Nobody's
// word counts for that: they make the answer hypothetical.
type claims struct {
	Standing             string   `json:"standing,omitempty" jsonschema:"what if the asker had this permission: none, read, write, admin, owner or unknown. Makes the answer hypothetical"`
	Roles                []string `json:"roles,omitempty" jsonschema:"what if the asker held these roles of the playbook. Makes the answer hypothetical"`
	BreakGlassAuthorized bool     `json:"break_glass_authorized,omitempty" jsonschema:"what if the operator had authorised break-glass. Makes the answer hypothetical"`
}

func (c claims) any() bool { return c.Standing != "" || len(c.Roles) > 0 || c.BreakGlassAuthorized }

type assessIn struct {
	Action            string   `json:"action" jsonschema:"the action asked about, such as full_mcp_restart; recovery_ladder lists them"`
	Target            string   `json:"target,omitempty" jsonschema:"the server or namespace; attempts that name another do not count"`
	Symptoms          []string `json:"symptoms,omitempty" jsonschema:"symptom codes, such as session_expired"`
	Attempts          any      `json:"prior_recovery_attempts_json,omitempty" jsonschema:"what was tried before: JSON (as text or as it is) of one attempt record, a list, or an inventory"`
	RequestBreakGlass bool     `json:"request_break_glass,omitempty" jsonschema:"ask to skip the attempt log; the operator must have authorised it"`
	Inventory         any      `json:"inventory_json,omitempty" jsonschema:"what is alive, as evaluate_restart_impact takes it: the answer then names the calls, tasks and input keys that this would end"`
	claims
}

type requestIn struct {
	assessIn
	Reason string `json:"reason,omitempty" jsonschema:"why, in a sentence or two; with break-glass, what cannot wait"`
	FileIn string `json:"file_in,omitempty" jsonschema:"owner/repo of the repository to file the request in; without it nothing is filed"`
}

func (t *tools) assess(ctx context.Context, in assessIn) (string, any, error) {
	d, _, err := t.decide(ctx, in, "")
	if err != nil {
		return "", nil, err
	}
	im, err := t.wouldEnd(in, d)
	if err != nil {
		return "", nil, err
	}
	return t.decisionText(d) + radiusText(im), decisionOut{Decision: d, Impact: im}, nil
}

func (t *tools) decide(ctx context.Context, in assessIn, repository string) (playbook.Decision, []playbook.Attempt, error) {
	if strings.TrimSpace(in.Action) == "" {
		return playbook.Decision{}, nil, errors.New(`action is missing: give one such as "full_mcp_restart"; recovery_ladder lists them`)
	}
	parsed, err := t.attempts(in.Attempts)
	if err != nil {
		return playbook.Decision{}, nil, err
	}
	rights, err := t.rights(ctx, in, repository)
	if err != nil {
		return playbook.Decision{}, nil, err
	}
	attempts := values(parsed)
	d := t.p.Decide(playbook.Escalation{
		Action: in.Action, Target: in.Target, Symptoms: in.Symptoms, Attempts: attempts,
		BreakGlass: playbook.BreakGlass{Requested: in.RequestBreakGlass, Authorized: rights.BreakGlassAuthorized},
		Standing:   rights.Standing, Actor: t.o.Account, Now: t.o.Now().UTC(),
	}, parsed.Rejections)
	d.Requester, d.Hypothetical = t.o.Account, in.any()
	return d, attempts, nil
}

// rights are the account's own, or, in a hypothetical question, as claimed.
func (t *tools) rights(ctx context.Context, in assessIn, repository string) (Rights, error) {
	if in.any() {
		r := Rights{Standing: playbook.Standing{Permission: playbook.PermissionNone, Roles: in.Roles}, BreakGlassAuthorized: in.BreakGlassAuthorized}
		if in.Standing != "" {
			permission, err := playbook.ParsePermission(in.Standing)
			if err != nil {
				return Rights{}, errors.New("standing: one of none, read, write, admin, owner, unknown")
			}
			r.Standing.Permission = permission
		}
		return r, nil
	}
	if t.o.Account == "" || t.o.Rights == nil {
		return Rights{Standing: playbook.Standing{Permission: playbook.PermissionNone}}, nil
	}
	action := in.Action
	if known, ok := t.p.NormalizeAction(action); ok {
		action = known
	}
	r, err := t.o.Rights(ctx, repository, action)
	if err != nil {
		t.o.Logger.WarnContext(ctx, "mcp tool: standing not read", "account", t.o.Account, "error", err)
		return Rights{Standing: playbook.Standing{Permission: playbook.PermissionUnknown}}, nil
	}
	return r, nil
}

// attempts reads what was tried. Hosts hand it over as text or as JSON.
func (t *tools) attempts(v any) (playbook.ParsedAttempts, error) {
	text, err := asText("prior_recovery_attempts_json", v)
	if err != nil {
		return playbook.ParsedAttempts{}, err
	}
	return t.p.ReadAttempts(text, playbook.Context{Author: t.o.Account, At: t.o.Now()}), nil
}

func asText(field string, v any) (string, error) {
	text, ok := v.(string)
	if v != nil && !ok {
		data, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("%s: no JSON", field)
		}
		text = string(data)
	}
	if len(text) > maxArgument {
		return "", fmt.Errorf("%s: larger than %d bytes; leave out what is older than this incident", field, maxArgument)
	}
	return text, nil
}

var repository = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}$`)

func (t *tools) request(ctx context.Context, tool string, in requestIn) (string, any, error) {
	if in.FileIn != "" && !repository.MatchString(in.FileIn) {
		return "", nil, errors.New(`file_in: expected "owner/repo", such as "ops/mcp"`)
	}
	d, attempts, err := t.decide(ctx, in.assessIn, in.FileIn)
	if err != nil {
		return "", nil, err
	}
	im, err := t.wouldEnd(in.assessIn, d)
	if err != nil {
		return "", nil, err
	}
	text, out := t.decisionText(d)+radiusText(im), decisionOut{Decision: d, Impact: im}
	switch {
	case in.FileIn == "":
		return text + "\nNothing was filed. Name file_in: \"owner/repo\" to file this request.", out, nil
	case d.Hypothetical:
		return text + "\nNothing was filed: a hypothetical question never is. Leave out standing, roles and break_glass_authorized to file it.", out, nil
	case t.o.Desk == nil || t.o.Account == "":
		return "", nil, errors.New("file_in: nothing can be filed here, since the token belongs to no forge account; ask without file_in, or file the issue by hand")
	case d.Rung == nil:
		return text + "\nNothing was filed: that is no action of the ladder.", out, nil
	case len(d.Rejections) > 0:
		return text + "\nNothing was filed: mend prior_recovery_attempts_json first, so that what you tried counts.", out, nil
	}
	filed, err := t.o.Desk.File(ctx, Filing{
		Account: t.o.Account, Tool: tool, Repository: in.FileIn, Action: d.Action, Target: in.Target, Symptoms: in.Symptoms,
		Reason: in.Reason, BreakGlass: in.RequestBreakGlass, Attempts: attempts,
	})
	if err != nil {
		t.o.Logger.WarnContext(ctx, "mcp tool: not filed", "account", t.o.Account, "repository", in.FileIn, "error", err)
		return "", nil, shown("filing in "+in.FileIn, err)
	}
	out.Filed = &filed
	return text + "\n" + filed.text() + " The answer that counts is the one given there: ask recovery_request_status with issue " + filed.Issue + ".", out, nil
}

func (f Filed) text() string {
	if f.Existing {
		return "It was filed before as " + f.Issue + ": " + f.URL + "."
	}
	return "Filed as " + f.Issue + ": " + f.URL + "."
}

type recommendIn struct {
	Symptoms []string `json:"symptoms,omitempty" jsonschema:"symptom codes, such as session_expired"`
	Attempts any      `json:"prior_recovery_attempts_json,omitempty" jsonschema:"what was tried before: JSON (as text or as it is) of one attempt record, a list, or an inventory"`
}

func (t *tools) recommend(_ context.Context, in recommendIn) (string, any, error) {
	parsed, err := t.attempts(in.Attempts)
	if err != nil {
		return "", nil, err
	}
	if err := wrong(parsed.Rejections); err != nil {
		return "", nil, err
	}
	r := t.p.RecommendActions(in.Symptoms, values(parsed))
	return t.recommendationText(r), r, nil
}

func values(p playbook.ParsedAttempts) []playbook.Attempt {
	out := make([]playbook.Attempt, 0, len(p.Attempts))
	for _, a := range p.Attempts {
		out = append(out, a.Attempt)
	}
	return out
}

// wrong is the error for a log that could not be read whole: a figure or a
// recommendation from half of it would mislead.
func wrong(rejections []playbook.RejectedText) error {
	if len(rejections) == 0 {
		return nil
	}
	var lines []string
	for _, r := range rejections {
		lines = append(lines, rejectionText(r))
	}
	return errors.New("prior_recovery_attempts_json: " + strings.Join(lines, "; "))
}

type metricsIn struct {
	Attempts any `json:"prior_recovery_attempts_json" jsonschema:"the attempts: JSON (as text or as it is) of a list of attempt records, or an inventory"`
}

func (t *tools) metrics(_ context.Context, in metricsIn) (string, any, error) {
	parsed, err := t.attempts(in.Attempts)
	if err != nil {
		return "", nil, err
	}
	if err := wrong(parsed.Rejections); err != nil {
		return "", nil, err
	}
	m := t.p.RecoveryMetrics(values(parsed))
	return metricsText(m), m, nil
}

func (t *tools) ladder(context.Context, struct{}) (string, any, error) {
	doc := t.p.LadderDocument()
	return ladderText(doc), doc, nil
}

type recordIn struct {
	Action     string `json:"action" jsonschema:"what was tried, a rung such as client_reconnect"`
	Outcome    string `json:"outcome" jsonschema:"how it went, such as failed, insufficient, timeout or succeeded"`
	Reason     string `json:"reason,omitempty" jsonschema:"what was seen, in a sentence"`
	Actor      string `json:"actor,omitempty" jsonschema:"who tried it; your token's account if left out"`
	RecordedAt string `json:"recorded_at,omitempty" jsonschema:"when, RFC 3339 with offset; now if left out"`
	Target     string `json:"target,omitempty" jsonschema:"the server or namespace it was tried on"`
}

func (t *tools) record(in recordIn) (playbook.Attempt, []string, error) {
	raw := playbook.RawAttempt{Action: in.Action, Outcome: in.Outcome, Reason: in.Reason, Actor: in.Actor, RecordedAt: in.RecordedAt, Target: in.Target}
	a, notes, problems := t.p.BuildAttemptRecord(raw, playbook.Context{Author: t.o.Account, At: t.o.Now()})
	var lines []string
	for _, p := range problems {
		lines = append(lines, problemText(p))
	}
	if lines != nil {
		return a, nil, errors.New("no valid record: " + strings.Join(lines, "; "))
	}
	return a, append([]string{}, notes...), nil
}

func (t *tools) build(_ context.Context, in recordIn) (string, any, error) {
	a, notes, err := t.record(in)
	if err != nil {
		return "", nil, err
	}
	line := playbook.AttemptLine(a.Action, a.Outcome, a.Target, a.Reason)
	return strings.Join(append([]string{"A valid record. As a line in an issue:", line}, notes...), "\n"), struct {
		Attempt playbook.Attempt `json:"attempt"`
		Line    string           `json:"line"`
		Notes   []string         `json:"notes"`
	}{a, line, notes}, nil
}

type recordAttemptIn struct {
	Issue string `json:"issue" jsonschema:"the issue of the request, owner/repo#41"`
	recordIn
}

var issueID = regexp.MustCompile(`^([A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100})#([1-9][0-9]{0,15})(?:/([1-9][0-9]{0,8}))?$`)

func parseIssue(s string) (issue, request string, err error) {
	m := issueID.FindStringSubmatch(s)
	if m == nil {
		return "", "", errors.New(`issue: expected "owner/repo#41", or "owner/repo#41/1" for one request of it`)
	}
	if m[3] != "" {
		request = m[2] + "/" + m[3]
	}
	return m[1] + "#" + m[2], request, nil
}

func (t *tools) recordAttempt(ctx context.Context, in recordAttemptIn) (string, any, error) {
	issue, _, err := parseIssue(in.Issue)
	if err != nil {
		return "", nil, err
	}
	if t.o.Account == "" {
		return "", nil, errors.New("record_attempt: your token belongs to no forge account; post the line of build_attempt_record by hand")
	}
	a, notes, err := t.record(in.recordIn)
	if err != nil {
		return "", nil, err
	}
	filed, err := t.o.Desk.Record(ctx, Recording{Account: t.o.Account, Tool: "record_attempt", Issue: issue, Attempt: a})
	if err != nil {
		t.o.Logger.WarnContext(ctx, "mcp tool: not recorded", "account", t.o.Account, "issue", issue, "error", err)
		return "", nil, shown("recording in "+issue, err)
	}
	return strings.Join(append([]string{"Recorded. " + filed.text()}, notes...), "\n"), struct {
		Filed
		Attempt playbook.Attempt `json:"attempt"`
		Notes   []string         `json:"notes"`
	}{filed, a, notes}, nil
}

type statusIn struct {
	Issue string `json:"issue" jsonschema:"owner/repo#41, or owner/repo#41/1 for one request of it"`
}

func (t *tools) status(ctx context.Context, in statusIn) (string, any, error) {
	issue, request, err := parseIssue(in.Issue)
	if err != nil {
		return "", nil, err
	}
	d, err := t.o.Desk.Status(ctx, Inquiry{Account: t.o.Account, Issue: issue, Request: request})
	if err != nil {
		t.o.Logger.WarnContext(ctx, "mcp tool: status not read", "account", t.o.Account, "issue", issue, "error", err)
		return "", nil, shown("asking about "+in.Issue, err)
	}
	return t.decisionText(d), d, nil
}
