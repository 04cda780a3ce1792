//! Lists of few items.

/// Items of which there are two at most, nearly always: these are in place, so that such a list costs no memory. What walks over a
/// whole program asks for one at every step.
#[derive(Clone, Debug)]
pub enum Few<T> {
    /// None.
    None,
    /// One.
    One([T; 1]),
    /// Two.
    Two([T; 2]),
    /// Any number.
    Many(Vec<T>),
}

impl<T> std::ops::Deref for Few<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Few::None => &[],
            Few::One(items) => items,
            Few::Two(items) => items,
            Few::Many(items) => items,
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Few<T> {
        let mut items = items.into_iter();
        match (items.next(), items.next(), items.next()) {
            (None, ..) => Few::None,
            (Some(a), None, _) => Few::One([a]),
            (Some(a), Some(b), None) => Few::Two([a, b]),
            (Some(a), Some(b), Some(c)) => Few::Many([a, b, c].into_iter().chain(items).collect()),
        }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = Items<T>;
    #[inline]
    fn into_iter(self) -> Items<T> {
        let (first, second, rest) = match self {
            Few::None => (None, None, Vec::new()),
            Few::One([a]) => (Some(a), None, Vec::new()),
            Few::Two([a, b]) => (Some(a), Some(b), Vec::new()),
            Few::Many(items) => (None, None, items),
        };
        Items { first, second, rest: rest.into_iter() }
    }
}

/// The items of a [`Few`].
#[derive(Debug)]
pub struct Items<T> {
    first: Option<T>,
    second: Option<T>,
    rest: std::vec::IntoIter<T>,
}

impl<T> Iterator for Items<T> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        self.first.take().or_else(|| self.second.take()).or_else(|| self.rest.next())
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = usize::from(self.first.is_some()) + usize::from(self.second.is_some()) + self.rest.len();
        (count, Some(count))
    }
}

impl<T> DoubleEndedIterator for Items<T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        self.rest.next_back().or_else(|| self.second.take()).or_else(|| self.first.take())
    }
}

impl<T> ExactSizeIterator for Items<T> {}
