package requests

import "context"

// What requests to other APIs are made of.
type (
	Member       = member
	Message      = message
	Content      = content
	AnswerFormat = answerFormat
	Shared       = request
)

// Inside returns a member that is an object with members, or a list of at most some objects.
func Inside(o Object, most int) Member { return member{inside: o, most: most} }

// Shared returns what completions and chats have in common.
func (r *request) Shared() *Shared { return r }

// Rename names the members of errors as the request has them. member has the prompts.
func (j *Job) Rename(member string, named func(err error) error) {
	j.member, j.Named = member, named
	for i, inner := range j.prompts {
		j.prompts[i] = func(ctx context.Context, m *Model) (Encoded, error) {
			e, err := inner(ctx, m)
			return e, named(err)
		}
	}
}

// Instead has the prompts of another job for some models. The jobs have as many.
func (j *Job) Instead(other *Job, when func(m *Model) bool) {
	for i, first := range j.prompts {
		j.prompts[i] = func(ctx context.Context, m *Model) (Encoded, error) {
			if when(m) {
				return other.prompts[i](ctx, m)
			}
			return first(ctx, m)
		}
	}
}
