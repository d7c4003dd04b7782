package mcp

// The output schemas are written out instead of inferred: they promise what is
// published, and an inferred one would take a permission, an integer in Go and
// its name in JSON, for an integer. Fields are only ever added to the outputs,
// so the schemas allow more.

type schema map[string]any

var (
	text     = schema{"type": "string"}
	number   = schema{"type": "number"}
	truth    = schema{"type": "boolean"}
	texts    = listOf(text)
	anything = schema{"type": "object"}
)

func listOf(item schema) schema { return schema{"type": "array", "items": item} }

func nullable(s schema) schema { return schema{"anyOf": []schema{s, {"type": "null"}}} }

// object is an object with these fields, each required.
func object(fields schema) schema {
	return schema{"type": "object", "properties": fields, "required": sortedKeys(fields)}
}

// withOptional adds fields that may be absent.
func withOptional(o, fields schema) schema {
	properties := schema{}
	for _, from := range []schema{o["properties"].(schema), fields} {
		for k, v := range from {
			properties[k] = v
		}
	}
	return schema{"type": "object", "properties": properties, "required": o["required"]}
}

var (
	attemptSchema = withOptional(object(schema{
		"action": text, "outcome": text, "reason": text, "actor": text, "recorded_at": text,
	}), schema{"target": text, "verified": truth, "kill": truth, "cut": truth})

	unknownSymptomSchema = object(schema{"symptom": text, "suggestions": texts})

	rejectionSchema = object(schema{"line": number, "source": text, "why": text, "suggestion": text})

	filedObject = withOptional(object(schema{"issue": text, "url": text, "existing": truth}), schema{"request": text})

	assessmentFields = schema{
		"allowed": truth, "code": text, "action": text, "target": text, "rung": nullable(number), "reasons": texts,
		"attempt_log_required": truth, "attempt_log_satisfied": truth,
		"counted": listOf(attemptSchema), "ignored": listOf(anything),
		"break_glass":  object(schema{"requested": truth, "authorized": truth, "used": truth}),
		"matrix":       object(schema{"allowed": truth, "why": text}),
		"contaminated": truth, "contamination": listOf(attemptSchema), "next": text,
		"missing":     listOf(object(schema{"what": text, "who": text, "post": text, "text": text})),
		"suggestions": texts, "unknown_symptoms": listOf(unknownSymptomSchema),
	}

	decisionSchema = func() schema {
		fields := schema{
			"schema": text, "request": text, "state": text, "verdict": schema{"enum": []string{"approved", "refused", "undecided", "none"}},
			"symptoms": texts, "requester": text, "endorser": nullable(text),
			"standing":   object(schema{"permission": text, "roles": texts}),
			"rejections": listOf(rejectionSchema), "approved_until": nullable(text), "retry_after_s": nullable(number),
			"playbook": object(schema{"name": text, "sha256": text}), "decided_at": text,
		}
		for k, v := range assessmentFields {
			fields[k] = v
		}
		return withOptional(object(fields), schema{"hypothetical": truth, "filed": filedObject, "impact": impactSchema})
	}()

	recommendationSchema = object(schema{
		"next": text, "notes": texts, "unknown_symptoms": listOf(unknownSymptomSchema),
		"ladder": listOf(object(schema{"action": text, "rank": number, "self_service": truth, "gated": truth, "delegation": text, "references": texts})),
	})

	recordSchema = object(schema{"attempt": attemptSchema, "line": text, "notes": texts})

	ladderSchema = object(schema{
		"schema": text, "name": text, "sha256": text, "contact": text,
		"rungs": listOf(anything), "outcomes": listOf(anything), "symptoms": listOf(anything), "matrix": listOf(anything),
	})

	metricsSchema = object(schema{
		"attempts": number, "by_action": anything, "by_outcome": anything, "recoveries": number, "avoided_full_restart": number,
		"fraction_avoided_full_restart": nullable(number), "mean_rung_at_recovery": nullable(number),
		"median_rung_at_recovery": nullable(number), "manual_kills": number,
	})

	impactSchema = withOptional(object(schema{
		"schema": text, "restart_class": text, "target": text, "playbook_escalation": nullable(object(assessmentFields)),
		"attempt_log_satisfied": nullable(truth), "sessions_ended": listOf(anything), "dead_tasks": listOf(anything),
		"dead_input_keys": listOf(anything), "ambiguous_calls": listOf(anything), "safe_to_resend": listOf(anything),
		"orphaned_leases": listOf(anything), "workers_stopped": texts, "rejections": listOf(rejectionSchema),
		"notes": texts, "mutated": truth, "statement": text,
	}), schema{"hypothetical": truth})

	filedSchema = withOptional(object(schema{
		"issue": text, "url": text, "existing": truth, "attempt": attemptSchema, "notes": texts,
	}), schema{"request": text})
)
