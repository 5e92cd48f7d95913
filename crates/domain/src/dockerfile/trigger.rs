//! The rules for `ONBUILD` triggers of base images, which the engine runs as a part of the build.

use super::{
    Escape, Instruction, Policy, lines::check_characters, parse::instruction, policy::Checker, words::SPACES,
};
use crate::applications::ImageRef;

impl Policy<'_> {
    /// Checks a trigger, and returns the images that it copies from.
    ///
    /// The engine reads the trigger itself, so that only one line without quotes in its options is
    /// accepted, and nothing that would have to be rewritten.
    ///
    /// # Errors
    ///
    /// For a trigger that breaks a rule.
    pub fn check_trigger(&self, trigger: &str, earlier_stages: &[String]) -> Result<Vec<ImageRef>, String> {
        check_characters(trigger)?;
        let line = trigger.trim_matches(SPACES);
        if line.starts_with('#') || line.ends_with('\\') {
            return Err("it is not a single instruction".to_owned());
        }
        let (parsed, has_quotes) = instruction(line, Escape::Backslash)?;
        if has_quotes {
            return Err("its options have quotes".to_owned());
        }
        if matches!(parsed, Instruction::From(_) | Instruction::Onbuild(_) | Instruction::Maintainer(_)) {
            return Err("`ONBUILD` may not contain `ONBUILD`, `FROM` or `MAINTAINER`".to_owned());
        }
        let mut checker = Checker::new(self, true);
        checker.complete = earlier_stages.to_vec();
        checker.instruction(&mut parsed.clone())?;
        Ok(checker.images.into_iter().map(|base| base.image).collect())
    }
}
