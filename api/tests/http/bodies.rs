//! Bodies that are JSON and no object: told in our words what was expected.

use crate::world::World;

#[tokio::test]
async fn what_is_no_object_is_told_what_was_expected() {
    let world = World::start().await;
    for path in ["/emails", "/suppressions", "/suppressions/check", "/templates", "/auth/sign-in"] {
        for (body, found) in [
            ("[]", "a list"),
            (" null", "null"),
            ("7", "a number"),
            ("\"{}\"", "a string"),
            ("true", "a boolean"),
            ("[{\"from\": 1}]", "a list"),
        ] {
            let answer = world.post(path, body).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (400, "validation_error"), "{path}");
            let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
            assert_eq!(message, format!("The body must be a JSON object (`{{…}}`), not {found}"), "{path}");
        }
    }
    // A batch may be a list; of what is no JSON that is said.
    assert_eq!(world.post("/emails/batch", "null").await.code(), "validation_error");
    for body in ["", "nul", "{", "{]"] {
        assert_eq!(world.post("/emails", body).await.code(), "invalid_json", "{body}");
    }
    world.end().await;
}
